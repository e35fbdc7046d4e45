// Keeps what is shown up to date; without it the browser loads pages that may change again and again.
"use strict";

const SECONDS = 2;

async function refresh() {
    const main = document.querySelector("main");
    if (document.hidden || !main.dataset.live || !document.getSelection().isCollapsed) {
        return;
    }
    const answer = await fetch(location.href, { credentials: "same-origin", redirect: "error" });
    if (!answer.ok) {
        return;
    }
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const found = fresh.querySelector("main");
    if (found.outerHTML === main.outerHTML) {
        return;
    }
    const scrolled = [...main.querySelectorAll("pre")].map((it) => [it.scrollTop, isAtEnd(it)]);
    const opened = [...main.querySelectorAll("details")].map((it) => it.open);
    main.replaceWith(found);
    found.querySelectorAll("details").forEach((it, index) => { it.open = opened[index] ?? it.open; });
    // A user who reads the end of a log goes on reading its end.
    found.querySelectorAll("pre").forEach((it, index) => {
        const [top, wasAtEnd] = scrolled[index] ?? [0, true];
        it.scrollTop = wasAtEnd ? it.scrollHeight : top;
    });
    document.title = fresh.title;
}

function isAtEnd(it) {
    return it.scrollTop + it.clientHeight >= it.scrollHeight - 4;
}

setInterval(() => refresh().catch(() => { /* it is tried again */ }), SECONDS * 1000);
