// From page to page of the documentation in one window, so its Python goes on: the text is
// exchanged, what surrounds it stays. Where that cannot be, the browser loads the page as ever.

const ROOT = new URL("../../", import.meta.url).href;
const TEXT = [".sidebar-tree", "article[role=main]", ".content > footer", ".toc-drawer"];
/** Their classes say whether the page has a table of contents. */
const ICONS = ".toc-overlay-icon";
const LOADED = "script[src], link[rel=stylesheet]";

const addressesIn = (page, base) =>
  Array.from(page.querySelectorAll(LOADED), (each) => {
    return new URL(each.getAttribute("src") ?? each.getAttribute("href"), base).href;
  });
const loaded = new Set(addressesIn(document, location));

let here = new URL(location.href);
let latest = null;
let arrive = null; // once links are followed here

/** From now on links to other pages exchange the text, and then call `arrived`. */
export function stayInPage(arrived) {
  if (arrive) return;
  arrive = arrived;
  addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (!link || event.defaultPrevented || event.button !== 0) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    if (link.target || link.hasAttribute("download") || !isOther(link)) return;
    event.preventDefault();
    visit(new URL(link.href), false);
  });
  addEventListener("popstate", () => {
    if (isOther(location)) visit(new URL(location.href), true);
    else here = new URL(location.href);
  });
  // Addresses of what stays would lead elsewhere from a page in another folder.
  for (const element of document.querySelectorAll("[href], [action]")) {
    const name = element.hasAttribute("href") ? "href" : "action";
    const value = element.getAttribute(name);
    if (!value.startsWith("#")) element.setAttribute(name, new URL(value, here).href);
  }
}

const isOther = ({ href, pathname }) => href.startsWith(ROOT) && pathname !== here.pathname;

/** Shows the page of an address; `back`: the browser has gone there in its history. */
async function visit(url, back) {
  latest = url;
  const page = await read(url).catch(() => null);
  if (latest !== url) return; // the reader has chosen another one
  if (!page) {
    if (back) location.reload();
    else location.assign(url);
    return;
  }
  if (!back) history.pushState(null, "", url);
  here = url;
  exchange(page);
  arrive();
  const target = url.hash && document.getElementById(decodeURIComponent(url.hash.slice(1)));
  if (target) target.scrollIntoView();
  else scrollTo(0, 0);
}

/** The document at an address; null if it needs more than the exchange of the text. */
async function read(url) {
  const response = await fetch(url);
  if (!response.ok) return null;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const more = addressesIn(page, url).some((each) => !loaded.has(each));
  const whole = [...TEXT, "h1"].every((each) => page.querySelectorAll(each).length === 1);
  return more || !whole ? null : page;
}

function exchange(page) {
  document.title = page.title;
  document.documentElement.dataset.content_root = page.documentElement.dataset.content_root;
  for (const each of TEXT) {
    document.querySelector(each).replaceWith(document.importNode(page.querySelector(each), true));
  }
  const icons = page.querySelectorAll(ICONS);
  for (const [i, icon] of document.querySelectorAll(ICONS).entries()) {
    icon.className = icons[i].className;
  }
  for (const drawer of document.querySelectorAll(".sidebar-toggle")) drawer.checked = false;
  const title = document.querySelector("h1");
  title.tabIndex = -1;
  title.focus({ preventScroll: true }); // screen readers begin to read here
}
