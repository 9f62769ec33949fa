// Names for what the theme shows by a sign only, for people who hear a page instead of seeing it.
document.addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll(".bd-sidebar-primary summary")) {
    const page = summary.closest("li")?.querySelector("a")?.textContent.trim();
    summary.setAttribute("aria-label", page ? `Pages under ${page}` : "More pages");
  }
  // What is seen ("Search Ctrl+K", only a sign on phones) is what is heard.
  for (const button of document.querySelectorAll(".search-button-field")) {
    button.setAttribute("aria-label", button.textContent.replace(/\s+/g, " ").trim());
  }
});
