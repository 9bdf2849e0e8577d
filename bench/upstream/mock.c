/* A model provider that is never the bottleneck: one thread, one epoll loop, answers made at start.
 *
 *   mock PORT
 *
 *   POST [/delay/MS][/gap/MS]/v1/chat/completions   an OpenAI chat completion; `"stream": true` in the
 *        body gives 50 server-sent chunks and [DONE], each in a send() of its own.
 *        /delay/MS waits before the answer, /gap/MS waits between the chunks of a stream.
 *   GET  /stats          of chat completions: {"served", "open", "streams", "streams_peak"}; /stats/reset forgets the peak.
 *   GET  anything else   a list of one model.
 *
 * A reader that falls behind is waited for with EPOLLOUT, never by spinning: it would burn the core that
 * the load shares.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHUNKS 50
#define MAX_FDS 16384
#define MAX_REQUEST (1 << 20)

typedef struct {
  const char *bytes;
  size_t length;
} piece;

typedef struct {
  char *in;
  size_t have, room;
  const piece *answer; /* NULL while no request is being answered */
  int next, count;     /* pieces of the answer */
  size_t sent;         /* of the piece at `next` */
  long gap, delay;     /* nanoseconds */
  int chat, streaming, wants_write;
  unsigned life; /* timers of an earlier life of this descriptor are ignored */
} conn;

typedef struct {
  long due;
  int fd;
  unsigned life;
} timer;

static conn conns[MAX_FDS];
static timer *heap;
static int heap_size, heap_room;
static int loop;
static unsigned long served;
static int open_conns, streams, streams_peak;
static piece plain_answer, models_answer, stats_answer, stream_answer[CHUNKS + 2];
static char stats_text[512];

static long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}

/* ---- answers ---- */

#define ID "chatcmpl-B3nch0000000000000000000000000"
#define MODEL "gpt-4o-mini-2024-07-18"

static piece keep(const char *text) { return (piece){strdup(text), strlen(text)}; }

static piece json_answer(const char *body) {
  static char text[8192];
  snprintf(text, sizeof text,
           "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
           "x-request-id: req_00000000000000000000000000000000\r\nopenai-processing-ms: 1\r\n\r\n%s",
           strlen(body), body);
  return keep(text);
}

static piece chunk(const char *delta, const char *finish, const char *more) {
  static char event[2048], text[2560];
  snprintf(event, sizeof event,
           "data: {\"id\":\"" ID "\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,\"model\":\"" MODEL
           "\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_0123456789\",\"choices\":[{\"index\":0,"
           "\"delta\":%s,\"logprobs\":null,\"finish_reason\":%s}]%s}\n\n",
           delta, finish, more);
  snprintf(text, sizeof text, "%zx\r\n%s\r\n", strlen(event), event);
  return keep(text);
}

static void make_answers(void) {
  plain_answer = json_answer(
      "{\"id\":\"" ID "\",\"object\":\"chat.completion\",\"created\":1760000000,\"model\":\"" MODEL
      "\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"A lighthouse warns ships of "
      "rocks and shallows. Its lamp turns at a fixed pace, so that a sailor who counts the seconds between two "
      "flashes knows which tower it is.\",\"refusal\":null,\"annotations\":[]},\"logprobs\":null,\"finish_reason\":"
      "\"stop\"}],\"usage\":{\"prompt_tokens\":42,\"completion_tokens\":36,\"total_tokens\":78,"
      "\"prompt_tokens_details\":{\"cached_tokens\":0,\"audio_tokens\":0},\"completion_tokens_details\":"
      "{\"reasoning_tokens\":0,\"audio_tokens\":0}},\"service_tier\":\"default\",\"system_fingerprint\":"
      "\"fp_0123456789\"}");
  models_answer = json_answer("{\"object\":\"list\",\"data\":[{\"id\":\"bench\",\"object\":\"model\","
                              "\"created\":1760000000,\"owned_by\":\"bench\"}]}");
  static const char *words[] = {" a", " lamp", " turns", " above", " the", " harbour", " and", " ships", " come", " home"};
  stream_answer[0] = keep("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
                          "Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n"
                          "x-request-id: req_00000000000000000000000000000000\r\n\r\n");
  stream_answer[1] = chunk("{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null}", "null", "");
  for (int i = 2; i < CHUNKS; i++) {
    char delta[64];
    snprintf(delta, sizeof delta, "{\"content\":\"%s\"}", words[i % 10]);
    stream_answer[i] = chunk(delta, "null", "");
  }
  stream_answer[CHUNKS] = chunk("{}", "\"stop\"",
                                ",\"usage\":{\"prompt_tokens\":42,\"completion_tokens\":48,\"total_tokens\":90}");
  stream_answer[CHUNKS + 1] = keep("e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
}

static const piece *stats(int reset) {
  if (reset) streams_peak = streams;
  char body[256];
  snprintf(body, sizeof body, "{\"served\":%lu,\"open\":%d,\"streams\":%d,\"streams_peak\":%d}", served, open_conns, streams,
           streams_peak);
  snprintf(stats_text, sizeof stats_text,
           "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
  stats_answer = (piece){stats_text, strlen(stats_text)};
  return &stats_answer;
}

/* ---- timers: a heap by due time ---- */

static void wake_at(long due, int fd) {
  if (heap_size == heap_room) heap = realloc(heap, sizeof *heap * (heap_room = heap_room ? heap_room * 2 : 1024));
  int at = heap_size++;
  for (int up; at && heap[up = (at - 1) / 2].due > due; at = up) heap[at] = heap[up];
  heap[at] = (timer){due, fd, conns[fd].life};
}

static timer next_timer(void) {
  timer first = heap[0], last = heap[--heap_size];
  int at = 0;
  for (int down; (down = 2 * at + 1) < heap_size; at = down) {
    if (down + 1 < heap_size && heap[down + 1].due < heap[down].due) down++;
    if (heap[down].due >= last.due) break;
    heap[at] = heap[down];
  }
  heap[at] = last;
  return first;
}

/* ---- connections ---- */

static void hang_up(int fd) {
  conn *c = &conns[fd];
  if (c->streaming) streams--;
  close(fd);
  open_conns--;
  free(c->in);
  *c = (conn){.life = c->life + 1};
}

static void watch(int fd, int write) {
  conn *c = &conns[fd];
  if (c->wants_write == write) return;
  c->wants_write = write;
  struct epoll_event e = {.events = write ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.fd = fd};
  epoll_ctl(loop, EPOLL_CTL_MOD, fd, &e);
}

/* Sends what is due. Returns 0 when the answer is complete, 1 when it must wait, -1 when the peer is gone. */
static int write_on(int fd) {
  conn *c = &conns[fd];
  while (c->next < c->count) {
    const piece *p = &c->answer[c->next];
    ssize_t n = send(fd, p->bytes + c->sent, p->length - c->sent, MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return -1;
      watch(fd, 1);
      return 1;
    }
    if ((c->sent += n) < p->length) continue;
    c->sent = 0;
    c->next++;
    if (c->gap && c->next > 1 && c->next < c->count) {
      wake_at(now() + c->gap, fd);
      watch(fd, 0);
      return 1;
    }
  }
  watch(fd, 0);
  if (c->streaming) streams--;
  c->streaming = 0;
  c->answer = NULL;
  served += c->chat;
  return 0;
}

static long milliseconds(const char *path, const char *name) {
  const char *at = strstr(path, name);
  return at ? atol(at + strlen(name)) * 1000000L : 0;
}

/* Takes one whole request from the buffer and sets its answer. Returns 1 when it did, 0 when more must come. */
static int read_on(conn *c) {
  if (c->answer || !c->have) return 0;
  c->in[c->have] = 0;
  char *end = memmem(c->in, c->have, "\r\n\r\n", 4);
  if (!end) return 0;
  size_t head = end - c->in + 4, whole = head;
  *end = 0;
  char *length = strcasestr(c->in, "\r\ncontent-length:"), *chunked = strcasestr(c->in, "\r\ntransfer-encoding:");
  char path[256] = "";
  int get = !strncmp(c->in, "GET ", 4);
  sscanf(c->in, "%*s %255s", path);
  *end = '\r';
  if (length) {
    whole = head + atol(length + 17);
  } else if (chunked) {
    char *last = memmem(c->in + head, c->have - head, "0\r\n\r\n", 5);
    if (!last) return 0;
    whole = last - c->in + 5;
  }
  if (c->have < whole) return 0;
  c->next = 0;
  c->sent = 0;
  c->count = 1;
  c->delay = c->gap = 0;
  c->chat = !get;
  if (get) {
    c->answer = strncmp(path, "/stats", 6) ? &models_answer : stats(strstr(path, "reset") != NULL);
  } else {
    c->delay = milliseconds(path, "/delay/");
    c->streaming = memmem(c->in + head, whole - head, "\"stream\":true", 13) ||
                   memmem(c->in + head, whole - head, "\"stream\": true", 14);
    c->answer = &plain_answer;
    if (c->streaming) {
      c->gap = milliseconds(path, "/gap/");
      c->answer = stream_answer;
      c->count = CHUNKS + 2;
      if (++streams > streams_peak) streams_peak = streams;
    }
  }
  memmove(c->in, c->in + whole, c->have -= whole);
  return 1;
}

/* Answers requests until the buffer holds no whole one, or one must wait. */
static void serve(int fd) {
  conn *c = &conns[fd];
  while (read_on(c)) {
    if (c->delay) {
      wake_at(now() + c->delay, fd);
      return;
    }
    int state = write_on(fd);
    if (state < 0) hang_up(fd);
    if (state) return;
  }
}

static void resume(int fd) {
  int state = write_on(fd);
  if (state < 0) hang_up(fd);
  if (!state) serve(fd);
}

static void receive(int fd) {
  conn *c = &conns[fd];
  if (c->room - c->have < 4096) {
    if (c->room >= MAX_REQUEST) return hang_up(fd);
    c->in = realloc(c->in, (c->room = c->room ? c->room * 2 : 8192) + 1);
  }
  ssize_t n = recv(fd, c->in + c->have, c->room - c->have, 0);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return hang_up(fd);
  if (n < 0) return;
  c->have += n;
  serve(fd);
}

static void greet(int listener) {
  for (int fd, on = 1; (fd = accept4(listener, 0, 0, SOCK_NONBLOCK)) >= 0;) {
    if (fd >= MAX_FDS) {
      close(fd);
      continue;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    open_conns++;
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(loop, EPOLL_CTL_ADD, fd, &e);
  }
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: mock PORT\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  make_answers();
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  struct sockaddr_in here = {
      .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (bind(listener, (void *)&here, sizeof here) || listen(listener, 4096)) {
    perror("mock");
    return 1;
  }
  loop = epoll_create1(0);
  struct epoll_event e = {.events = EPOLLIN, .data.fd = listener}, ready[256];
  epoll_ctl(loop, EPOLL_CTL_ADD, listener, &e);
  for (;;) {
    struct timespec wait, *limit = NULL;
    if (heap_size) {
      long left = heap[0].due - now();
      if (left < 0) left = 0;
      wait = (struct timespec){left / 1000000000L, left % 1000000000L};
      limit = &wait;
    }
    int n = epoll_pwait2(loop, ready, 256, limit, NULL);
    for (int i = 0; i < n; i++) {
      int fd = ready[i].data.fd;
      if (fd == listener)
        greet(fd);
      else if (ready[i].events & EPOLLOUT)
        resume(fd);
      else
        receive(fd);
    }
    if (!heap_size) continue;
    for (long t = now(); heap_size && heap[0].due <= t;) {
      timer due = next_timer();
      if (conns[due.fd].life == due.life) resume(due.fd);
    }
  }
}
