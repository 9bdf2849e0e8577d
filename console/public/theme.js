// Before the first paint: the theme that the user chose. Without a choice the browser's applies.
try {
  const theme = localStorage.getItem("gatehouse.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage is blocked.
}
