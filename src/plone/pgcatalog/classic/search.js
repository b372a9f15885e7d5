/* The search page without loading it anew: what is chosen, sorted or paged is fetched, and its parts are replaced.
   Without this script the same form and links load whole pages. */
(function () {
  "use strict";

  const PARTS = ["search-heading", "search-status", "search-chips", "search-facets", "search-results"];
  const form = document.getElementById("searchform");
  if (!form || !PARTS.every((id) => document.getElementById(id))) {
    return;
  }

  // Choosing is enough, and on a small screen the facets wait behind a button.
  document.getElementById("search-apply").hidden = true;
  document.getElementById("search-filters").classList.add("collapse");
  document.getElementById("search-filters-toggle").hidden = false;
  history.replaceState({ pgcatalogSearch: true }, "");

  let running = null;

  function address(data) {
    const parameters = new URLSearchParams();
    for (const [name, value] of data) {
      if (value !== "" || name === "SearchableText") {
        parameters.append(name, value);
      }
    }
    const url = new URL(form.action, location.href);
    url.search = parameters.toString();
    return url.href;
  }

  function replaceParts(page) {
    const focused = document.activeElement && document.activeElement.id;
    const open = Array.from(form.querySelectorAll("details[open]"), (details) => details.id);
    for (const id of PARTS) {
      document.getElementById(id).replaceChildren(...page.getElementById(id).childNodes);
    }
    for (const id of open) {
      const details = document.getElementById(id);
      if (details) {
        details.open = true;
      }
    }
    document.title = page.title;
    const again = focused && document.getElementById(focused);
    if (again) {
      again.focus({ preventScroll: true });
    }
    return Boolean(again);
  }

  async function show(url, isNew) {
    if (running) {
      running.abort();
    }
    const results = document.getElementById("search-results");
    const mine = (running = new AbortController());
    results.setAttribute("aria-busy", "true");
    try {
      const response = await fetch(url, { signal: mine.signal, headers: { Accept: "text/html" } });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      if (!response.ok || !PARTS.every((id) => page.getElementById(id))) {
        throw new Error("no search page");
      }
      if (isNew) {
        history.pushState({ pgcatalogSearch: true }, "", url);
      }
      const kept = replaceParts(page);
      results.removeAttribute("aria-busy");
      return kept;
    } catch (error) {
      if (error.name !== "AbortError") {
        location.assign(url);
      }
      return true;
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    show(address(new FormData(form)), true);
  });

  form.addEventListener("change", (event) => {
    if (event.target.matches("input[type=checkbox], select")) {
      show(address(new FormData(form)), true);
    }
  });

  form.addEventListener("click", async (event) => {
    const link = event.target.closest("a[href]");
    const changed = event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
    if (!link || changed || link.origin !== location.origin || link.pathname !== location.pathname) {
      return;
    }
    event.preventDefault();
    document.getElementById("search-text").value = new URL(link.href).searchParams.get("SearchableText") || "";
    if (!(await show(link.href, true))) {
      // The link is gone: the reader goes on at the beginning of what is new.
      const heading = document.getElementById("search-heading");
      heading.focus({ preventScroll: true });
      heading.scrollIntoView({ block: "nearest" });
    }
  });

  // Before pat-inject's own listener, which loads the page again for every entry of the history that has a state.
  window.addEventListener(
    "popstate",
    (event) => {
      if (event.state && event.state.pgcatalogSearch) {
        event.stopImmediatePropagation();
        document.getElementById("search-text").value = new URL(location.href).searchParams.get("SearchableText") || "";
        show(location.href, false);
      }
    },
    true
  );
})();
