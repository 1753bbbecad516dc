// Shows what pyscript.py found out; the same for the page and for the worker.
import { highlight } from "./highlight.mjs";
import { publish } from "./support.mjs";

const list = document.querySelector("#steps");

new MutationObserver(() => {
  const steps = Object.entries(JSON.parse(list.dataset.steps));
  const items = steps.map(([text, held]) => {
    const item = Object.assign(document.createElement("li"), { textContent: text });
    item.classList.toggle("broken", !held);
    return item;
  });
  list.replaceChildren(...items);
  const checks = Object.fromEntries(steps);
  publish({ page: "pyscript", ok: Object.values(checks).every(Boolean), checks });
}).observe(list, { attributeFilter: ["data-steps"] });

highlight(document.querySelector("#code"), await (await fetch("pyscript.py")).text());
