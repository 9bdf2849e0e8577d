import { useEffect, useRef, useState } from "react";

interface Run<Progress, Result> {
  busy: boolean;
  progress: Progress | undefined;
  result: Result | undefined;
  error: unknown;
}

type Work<Progress, Result> = (report: (progress: Progress) => void, signal: AbortSignal) => Promise<Result>;

/** Runs work that sends several requests, and reports its progress. `stop` and unmounting the component abort the
 * work. */
export function useRun<Progress, Result>() {
  const idle: Run<Progress, Result> = { busy: false, progress: undefined, result: undefined, error: undefined };
  const [run, setRun] = useState(idle);
  const controller = useRef<AbortController>(null);
  const stop = () => {
    controller.current?.abort();
    setRun(idle);
  };
  useEffect(() => () => controller.current?.abort(), []);

  function start(work: Work<Progress, Result>) {
    controller.current?.abort();
    const { signal } = (controller.current = new AbortController());
    const set = (change: Partial<Run<Progress, Result>>) => {
      if (!signal.aborted) setRun((now) => ({ ...now, ...change }));
    };
    setRun({ ...idle, busy: true });
    void work((progress) => set({ progress }), signal).then(
      (result) => set({ busy: false, result }),
      (error: unknown) => set({ busy: false, error }),
    );
  }

  return { ...run, start, stop };
}
