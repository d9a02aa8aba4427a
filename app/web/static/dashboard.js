// Keeps the page fresh: fetches it again and puts in the sections that changed. Without this script nothing is missing.
"use strict";

const EVERY_MS = 5000;
const live = document.getElementById("live");

function openDetails(section) {
  return new Set([...section.querySelectorAll("details[open]")].map((details) => details.id));
}

// A section that holds what somebody is choosing in is left alone until they have gone on.
function isInUse(section) {
  return section.contains(document.activeElement) && document.activeElement.matches("select, button, input");
}

function refresh(fresh) {
  for (const section of document.querySelectorAll("[data-live]")) {
    const replacement = fresh.getElementById(section.id);
    if (replacement === null || replacement.innerHTML === section.innerHTML || isInUse(section)) continue;
    const focused = section.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    const open = openDetails(section);
    section.innerHTML = replacement.innerHTML;
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    if (focused !== null) section.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }
  document.title = fresh.title;
  document.getElementById("made").innerHTML = fresh.getElementById("made").innerHTML;
}

function announce(fresh) {
  const position = fresh.getElementById("live").dataset.position;
  if (position !== live.dataset.position) {
    const count = Number(position) - Number(live.dataset.position);
    live.textContent = count === 1 ? "1 new event" : `${count} new events`;
    live.dataset.position = position;
  }
  live.classList.remove("bad");
}

async function look() {
  if (!document.hidden) {
    try {
      const answer = await fetch(location.pathname + location.search, { cache: "no-store" });
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      refresh(fresh);
      announce(fresh);
    } catch (error) {
      live.textContent = `What is shown may be old: ${error.message}`;
      live.classList.add("bad");
    }
  }
  setTimeout(look, EVERY_MS);
}

setTimeout(look, EVERY_MS);
