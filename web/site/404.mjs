// Pages of the documentation whose words are in the address that was not found.
try {
  const { find } = await import("./docs/_static/search.mjs");
  const words = decodeURI(location.pathname).replace(/\.\w+$|[^\p{L}\p{N}]+/gu, " ");
  const list = document.querySelector("#suggestions");
  for (const { title, link } of (await find(words)).slice(0, 5)) {
    const item = list.appendChild(document.createElement("li"));
    item.append(
      Object.assign(document.createElement("a"), { href: `/docs/${link}`, textContent: title }),
    );
  }
  list.parentElement.hidden = !list.firstChild;
} catch {
  // The documentation is not on this site.
}
