/** Returns whether the selection of the page contains the text. */
export function isSelected(text: string): boolean {
  return getSelection()?.toString().includes(text) ?? false;
}
