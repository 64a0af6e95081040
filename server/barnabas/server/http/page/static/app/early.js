// The chosen theme, before anything is drawn. Without a choice the system decides.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // A browser that stores nothing follows the system.
}
