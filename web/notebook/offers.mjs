// What the page offers: drafts of tabs that have ended, and a link to this notebook.
import { toLink } from "./share.mjs";

const $ = (id) => document.querySelector(`#${id}`);
const SHOWN = 5; // drafts; the others come when these are gone

/**
 * Offers what tabs that have ended did not save.
 *
 * @param restore - opens a draft; false where the reader would rather not
 * @param tell - says what went wrong
 */
export async function offerDrafts(drafts, restore, tell) {
  let left;
  try {
    left = await drafts.left();
  } catch {
    return; // a browser that keeps nothing
  }
  for (const draft of left.slice(0, SHOWN)) {
    const item = document.createElement("li");
    const text = document.createElement("span");
    text.textContent = `${draft.name} was not saved (${new Date(draft.at).toLocaleString()}).`;
    // Shown as long as it is kept: a tab that ends meanwhile leaves it to the next.
    const gone = () =>
      drafts.remove(draft.id).then(
        () => item.remove(),
        (error) => tell(error.message),
      );
    const back = () => {
      try {
        if (restore(draft)) gone();
      } catch (error) {
        tell(error.message);
      }
    };
    item.append(text, button("Restore", back), button("Discard", gone));
    $("offers").append(item);
  }
}

function button(label, does) {
  const made = Object.assign(document.createElement("button"), { type: "button" });
  made.textContent = label;
  made.onclick = does;
  return made;
}

const HERE = /^(localhost|127\..*|\[::1\])$/;

/** Shows a link that holds the cells of a notebook. */
export async function showLink(name, cells) {
  const link = new URL(await toLink(name, cells), location.href).href;
  $("link").value = link;
  const notes = [`${(link.length / 1000).toFixed(1)} KB, without outputs.`];
  if (link.length > 8000) notes.push("Some mail programs and chats cut links as long as that.");
  if (HERE.test(location.hostname))
    notes.push(
      "This site runs on your computer, so the link opens on this computer only. Send the saved " +
        "file instead, or publish the site.",
    );
  $("link-size").textContent = notes.join(" ");
  $("shared").showModal();
  $("link").select();
}

$("copy").onclick = async () => {
  $("link").select();
  await navigator.clipboard.writeText($("link").value).catch(() => document.execCommand("copy"));
  $("link-size").textContent = "Copied.";
};
