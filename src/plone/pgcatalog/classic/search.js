/* The search page without loading it anew: what is chosen, sorted or paged is fetched, and its parts are replaced.
   Without this script the same form and links load whole pages. */
(function () {
  "use strict";

  const PARTS = ["kept", "heading", "status", "order", "chips", "facets", "results"].map((name) => `search-${name}`);
  // The column of the facets, which is hidden if there are none.
  const SIDE = "search-side";
  const FACETS = "search-facets";
  const isSearchPage = (page) => [...PARTS, SIDE].every((id) => page.getElementById(id));
  const form = document.getElementById("searchform");
  if (!form || !isSearchPage(document)) {
    return;
  }

  // Choosing is enough, and on a small screen the facets wait behind a button.
  document.getElementById("search-apply").hidden = true;
  document.getElementById("search-filters").classList.add("collapse");
  document.getElementById("search-filters-toggle").hidden = false;

  const path = location.pathname;
  // What is on its way: a page, or its facets.
  let running = new AbortController();
  // The query of what is on the page, or on its way.
  let shown = location.search;

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

  // Fields that find a value of a long facet need a script.
  function showFields() {
    for (const field of form.querySelectorAll(".search-values")) {
      field.hidden = false;
    }
  }

  // The field itself stays, for who is typing in it.
  function takeText(url) {
    document.getElementById("search-text").value = new URL(url).searchParams.get("SearchableText") || "";
  }

  // Facets stay where they are until those that belong to the hits are there: nothing jumps, and what has the focus keeps it.
  function keepFacets(page) {
    const chosen = [...page.getElementById(FACETS).querySelectorAll("input")];
    if (!page.getElementById(FACETS).dataset.source || !chosen.every(({ id }) => document.getElementById(id))) {
      return false;
    }
    for (const input of document.getElementById(FACETS).querySelectorAll("input")) {
      input.checked = chosen.some(({ id }) => id === input.id);
    }
    return true;
  }

  function replaceParts(page) {
    const focused = document.activeElement && document.activeElement.id;
    const open = Array.from(form.querySelectorAll("details[open]"), (details) => details.id);
    const parts = PARTS.filter((id) => page.getElementById(id) && !(id === FACETS && keepFacets(page)));
    for (const id of parts) {
      document.getElementById(id).replaceChildren(...page.getElementById(id).childNodes);
    }
    for (const id of open) {
      const details = document.getElementById(id);
      if (details) {
        details.open = true;
      }
    }
    showFields();
    const again = focused && document.getElementById(focused);
    if (again) {
      again.focus({ preventScroll: true });
    }
    return Boolean(again);
  }

  async function fetched(url, signal) {
    const response = await fetch(url, { signal, headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (!response.ok || !page.getElementById(FACETS)) {
      throw new Error("no search page");
    }
    return page;
  }

  // In a large catalog facets take longer than hits, and come by a request of their own.
  async function completeFacets(source, signal) {
    const facets = document.getElementById(FACETS);
    if (!source) {
      facets.removeAttribute("aria-busy");
      return;
    }
    facets.setAttribute("aria-busy", "true");
    try {
      replaceParts(await fetched(source, signal));
      facets.removeAttribute("aria-busy");
    } catch (error) {
      // The page goes without counts; the next one asks again.
      if (error.name !== "AbortError") {
        facets.removeAttribute("aria-busy");
      }
    }
  }

  async function show(url, isNew) {
    running.abort();
    shown = new URL(url).search;
    const results = document.getElementById("search-results");
    const mine = (running = new AbortController());
    results.setAttribute("aria-busy", "true");
    try {
      const page = await fetched(url, mine.signal);
      if (!isSearchPage(page)) {
        throw new Error("no search page");
      }
      if (isNew) {
        history.replaceState(null, "");
        history.pushState(null, "", url);
      }
      const source = page.getElementById(FACETS).dataset.source;
      document.getElementById(SIDE).hidden = page.getElementById(SIDE).hidden;
      document.title = page.title;
      const kept = replaceParts(page);
      results.removeAttribute("aria-busy");
      completeFacets(source, mine.signal);
      return kept;
    } catch (error) {
      if (error.name !== "AbortError") {
        location[isNew ? "assign" : "replace"](url);
      }
      return true;
    }
  }

  form.addEventListener("input", ({ target }) => {
    if (target.matches(".search-values")) {
      const wanted = target.value.trim().toLocaleLowerCase();
      for (const item of target.parentElement.querySelectorAll("li")) {
        const isWanted = item.textContent.toLocaleLowerCase().includes(wanted);
        item.hidden = !isWanted && !item.querySelector(":checked");
      }
    }
  });

  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.matches(".search-values")) {
      event.preventDefault();
    }
  });

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
    if (!link || changed || link.origin !== location.origin || link.pathname !== path) {
      return;
    }
    event.preventDefault();
    takeText(link.href);
    if (!(await show(link.href, true))) {
      // The link is gone: the reader goes on at the beginning of what is new.
      const heading = document.getElementById("search-heading");
      heading.focus({ preventScroll: true });
      heading.scrollIntoView({ block: "nearest" });
    }
  });

  // Counts that a hit was opened: without cookies, and nothing waits for it.
  for (const kind of ["click", "auxclick"]) {
    form.addEventListener(kind, (event) => {
      const link = event.button < 2 && event.target.closest("[data-opened] .result-title a");
      if (link) {
        const { opened, text } = link.closest("[data-opened]").dataset;
        const headers = { Accept: "application/json", "Content-Type": "application/json" };
        const sent = { method: "POST", keepalive: true, credentials: "omit", headers, body: JSON.stringify({ text }) };
        fetch(opened, sent).catch(() => {});
      }
    });
  }

  // Going back and forward.  pat-inject loads the page again for an entry of the history that has a state, and gives one to
  // the page and to anchors; a browser calls the listeners of a window in the order in which they came.  So no entry here
  // keeps its state, and pat-inject hears of none that we show if it comes later.
  window.addEventListener("popstate", (event) => {
    if (location.pathname !== path) {
      return;
    }
    event.stopImmediatePropagation();
    history.replaceState(null, "");
    if (location.search !== shown) {
      takeText(location.href);
      show(location.href, false);
    }
  });

  showFields();
  completeFacets(document.getElementById(FACETS).dataset.source, running.signal);
})();
