import { afterEach, expect, test } from "vitest";
import { answerClosing, closeDialog, hasUnsaved, losesUnsaved, registerUnsaved } from "./unsaved";

const removals: (() => void)[] = [];

function form(dialog: string | null): () => void {
  const remove = registerUnsaved(dialog);
  removals.push(remove);
  return remove;
}

afterEach(() => {
  for (const remove of removals.splice(0)) remove();
});

test("a form of the page is lost with the path, and a form of a dialog with every change of the URL", () => {
  expect(losesUnsaved("/a", "/b")).toBe(false);
  const remove = form(null);
  expect([losesUnsaved("/a", "/a"), losesUnsaved("/a", "/b")]).toEqual([false, true]);
  form("one");
  expect(losesUnsaved("/a", "/a")).toBe(true);
  remove();
  expect(losesUnsaved("/a", "/a")).toBe(true);
});

test("a dialog without unsaved changes closes at once, whatever other forms have", () => {
  let closed = 0;
  form(null);
  form("another");
  closeDialog("one", () => closed++);
  expect(closed).toBe(1);
  expect(hasUnsaved()).toBe(true);
});

test("a dialog with unsaved changes closes after the question, and then nothing asks again", () => {
  let closed = 0;
  form("one");
  closeDialog("one", () => {
    // A dialog in the URL is closed by a navigation.
    expect(losesUnsaved("/a", "/a")).toBe(false);
    closed++;
  });
  expect([closed, hasUnsaved()]).toEqual([0, true]);
  answerClosing(false);
  expect([closed, hasUnsaved()]).toEqual([0, true]);
  closeDialog("one", () => closed++);
  answerClosing(true);
  expect([closed, hasUnsaved()]).toEqual([1, false]);
  answerClosing(true);
  expect(closed).toBe(1);
});
