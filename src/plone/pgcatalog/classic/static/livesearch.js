/* Makes Plone's live search a combobox with a listbox, as the ARIA Authoring Practices describe it, and shows the words and
   the correction that our answer has besides its pages.  Plone's pattern goes on asking, showing pages, and hiding. */
(() => {
    "use strict";
    let number = 0;

    const element = (name, classes, text) => {
        const made = document.createElement(name);
        made.className = classes;
        made.textContent = text || "";
        return made;
    };

    const link = (entry, classes) => {
        const item = element("li", `${classes} list-group-item list-group-item-action`);
        const anchor = element("a", "text-reset text-decoration-none d-block", entry.label);
        anchor.href = entry.url;
        item.append(anchor);
        return item;
    };

    // Pages that have not the words: a heading, and each with its passage.
    const alsoAbout = (also) => {
        const heading = element("li", "pgcatalog-also-heading list-group-item small fw-bold pt-3", also.label);
        const pages = also.pages.map((page) => {
            const item = link({ url: page.url, label: page.title }, "pgcatalog-also");
            item.firstChild.append(element("small", "d-block", page.text));
            return item;
        });
        return [heading, ...pages];
    };

    const enhance = (form, list) => {
        const input = form.querySelector("input[type=text]");
        const status = element("div", "visually-hidden");
        let options = [];
        let active = -1;
        let short = null;
        list.id = list.id || `livesearch-results-${++number}`;
        // No word widens the page.
        list.classList.add("text-break");
        status.setAttribute("role", "status");
        list.after(status);
        input.setAttribute("role", "combobox");
        input.setAttribute("aria-autocomplete", "list");
        input.setAttribute("aria-expanded", "false");

        const choose = (index) => {
            active = index;
            options.forEach((option, place) => {
                option.setAttribute("aria-selected", String(place === active));
                option.closest("li").classList.toggle("active", place === active);
            });
            if (active < 0) {
                input.removeAttribute("aria-activedescendant");
            } else {
                input.setAttribute("aria-activedescendant", options[active].id);
                options[active].scrollIntoView({ block: "nearest" });
            }
        };

        const isOpen = () => options.length > 0 && !list.classList.contains("d-none");

        const tellWhetherOpen = () => {
            input.setAttribute("aria-expanded", String(isOpen()));
            if (isOpen()) {
                input.setAttribute("aria-controls", list.id);
            } else {
                input.removeAttribute("aria-controls");
                choose(-1);
            }
        };

        // The pattern says "enter search phrase" to who has typed too little; this says how much it takes.
        const tellHowMany = async (pattern) => {
            try {
                short = short || fetch(pattern.options.ajaxUrl).then((response) => response.json());
                const text = (await short).short.replace("${number}", pattern.options.minimumInputLength);
                list.querySelectorAll(".no-search").forEach((message) => {
                    message.textContent = status.textContent = text;
                });
            } catch {
                short = null;  // the pattern's own message stays
            }
        };

        const complete = () => {
            const pattern = form["pattern-livesearch"] || {};
            const found = pattern.results || {};
            const summary = list.querySelector(".results-summary");
            if (summary && found.corrected) {
                summary.after(link(found.corrected, "pgcatalog-corrected"));
            }
            const last = list.querySelector(".load-more");
            (summary ? found.words || [] : []).forEach((word) => {
                list.insertBefore(link(word, "pgcatalog-word"), last);
            });
            // Behind the pages, or the message that there are none, and before the link to all.
            if (found.also && list.querySelector(".results-summary, .no-results")) {
                alsoAbout(found.also).forEach((item) => list.insertBefore(item, last));
            }
            list.setAttribute("aria-label", found.label || input.title);
            options = [...list.querySelectorAll("a")];
            list.querySelectorAll("li").forEach((item) => item.setAttribute("role", "none"));
            options.forEach((option, place) => {
                option.id = `${list.id}-${place}`;
                option.tabIndex = -1;
                [option, ...option.querySelectorAll("*")].forEach((part) => part.setAttribute("dir", "auto"));
                option.setAttribute("role", "option");
            });
            if (options.length) {
                list.setAttribute("role", "listbox");
            } else {
                list.removeAttribute("role");
                list.removeAttribute("aria-label");
            }
            // A message, such as the number of pages; announced only when there is no other behind it.
            const told = [".searching, .no-results, .results-summary", ".pgcatalog-corrected"];
            status.textContent = told.map((css) => list.querySelector(css)?.textContent).filter(Boolean).join(". ");
            choose(-1);
            tellWhetherOpen();
            if (list.querySelector(".no-search")) {
                tellHowMany(pattern);
            }
        };

        const watch = new MutationObserver((changes) => {
            watch.disconnect();
            if (changes.some((change) => change.type === "childList")) {
                complete();
            } else {
                tellWhetherOpen();
            }
            observe();
        });
        const observe = () => watch.observe(list, { childList: true, attributes: true, attributeFilter: ["class"] });

        const keys = {
            ArrowDown: () => choose((active + 2) % (options.length + 1) - 1),
            ArrowUp: () => choose((active + 1 + options.length) % (options.length + 1) - 1),
            Enter: () => options[active].click(),
        };
        // In front of the pattern's own keys, which leave out words, and submit the form while they follow a link.
        const handle = (event) => {
            if (event.target !== input || !isOpen() || !keys[event.key] || (event.key === "Enter" && active < 0)) {
                return;
            }
            event.preventDefault();
            event.stopPropagation();
            if (event.type === "keydown") {
                keys[event.key]();
            }
        };
        form.addEventListener("keydown", handle, true);
        form.addEventListener("keyup", handle, true);
        complete();
        observe();
    };

    // The pattern puts its list behind the form, some time after the page is there.
    const seek = () => {
        document.querySelectorAll("form.pat-livesearch").forEach((form) => {
            const list = form.parentNode.querySelector(":scope > .livesearch-results");
            if (list && !form.dataset.pgcatalogCombobox) {
                form.dataset.pgcatalogCombobox = "true";
                enhance(form, list);
            }
        });
    };
    const start = () => {
        seek();
        new MutationObserver(seek).observe(document.body, { childList: true, subtree: true });
    };
    if (document.readyState === "loading") {
        document.addEventListener("DOMContentLoaded", start);
    } else {
        start();
    }
})();
