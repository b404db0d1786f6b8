#include "monitor/report/page_parts.h"

namespace tsomon::report {

// The state is in the address: #q=counter&kind=data-race&verdict=predicted, or #f7 for one finding.
const char* const kPageScript = R"page(
(() => {
  "use strict";
  const all = Array.from(document.querySelectorAll(".finding"));
  const groups = Array.from(document.querySelectorAll(".group"));
  const byId = (id) => document.getElementById(id);
  const tools = byId("tools"), query = byId("q"), kind = byId("kind"), verdict = byId("verdict"), count = byId("shown");
  tools.hidden = false;
  const isShown = (each) => !each.classList.contains("off");
  const texts = new Map();
  const textOf = (each) => {
    if (!texts.has(each)) texts.set(each, (each.dataset.group + " " + each.textContent).toLowerCase());
    return texts.get(each);
  };
  const filter = () => {
    const words = query.value.toLowerCase().split(/\s+/).filter((word) => word);
    let shown = 0;
    for (const each of all) {
      const fits = (!kind.value || each.dataset.kind === kind.value) && (!verdict.value || each.dataset.verdict === verdict.value) &&
          words.every((word) => textOf(each).includes(word));
      each.classList.toggle("off", !fits);
      shown += fits ? 1 : 0;
    }
    for (const group of groups) group.classList.toggle("off", !group.querySelector(".finding:not(.off)"));
    count.textContent = (shown === all.length ? "" : shown + " of ") + all.length + (all.length === 1 ? " finding" : " findings");
  };
  const openAround = (each) => {
    for (let at = each; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  };
  const readAddress = () => {
    const hash = location.hash.slice(1);
    const named = /^f\d+$/.test(hash) ? byId(hash) : null;
    const state = new URLSearchParams(named ? "" : hash);
    for (const field of [query, kind, verdict]) {
      field.value = state.get(field.id) || "";
      if (field.selectedIndex === -1) field.value = "";
    }
    filter();
    if (named) {
      openAround(named);
      named.querySelector("summary").focus();
      named.scrollIntoView();
    }
  };
  const writeAddress = () => {
    const state = new URLSearchParams();
    for (const field of [query, kind, verdict]) if (field.value) state.set(field.id, field.value);
    history.replaceState(null, "", "#" + state.toString());
    filter();
  };
  let waiting = 0;
  query.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(writeAddress, 120); });
  kind.addEventListener("change", writeAddress);
  verdict.addEventListener("change", writeAddress);
  const openAll = (open) => {
    for (const each of all.filter(isShown)) each.open = open;
    for (const each of groups.filter(isShown)) each.open = open;
  };
  byId("open").addEventListener("click", () => openAll(true));
  byId("close").addEventListener("click", () => openAll(false));
  const move = (by) => {
    const there = all.filter(isShown);
    if (!there.length) return;
    const at = there.indexOf(document.activeElement.closest(".finding"));
    const next = there[at < 0 ? (by > 0 ? 0 : there.length - 1) : Math.min(Math.max(at + by, 0), there.length - 1)];
    openAround(next.parentElement);
    next.querySelector("summary").focus();
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.target === query && (event.key === "Escape" || event.key === "Enter")) {
      clearTimeout(waiting);
      if (event.key === "Escape") query.value = "";
      writeAddress();
      query.blur();
      if (event.key === "Enter") move(1);
      event.preventDefault();
    } else if (!/^(INPUT|SELECT)$/.test(event.target.tagName)) {
      if (event.key === "/") { query.focus(); query.select(); event.preventDefault(); }
      if (event.key === "j") move(1);
      if (event.key === "k") move(-1);
    }
  });
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = Array.from(document.querySelectorAll("details:not([open])"));
    for (const each of closed) each.open = true;
  });
  addEventListener("afterprint", () => { for (const each of closed) each.open = false; });
  addEventListener("hashchange", readAddress);
  readAddress();
})();
)page";

}  // namespace tsomon::report
