// A button on each listing that has none: blocks of Python have theirs (run/block.mjs).
for (const listing of document.querySelectorAll(".highlight > pre")) {
  if (listing.closest(".block")) continue;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy-listing";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(listing.textContent.trimEnd());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed: select the text";
    }
    setTimeout(() => {
      button.textContent = "Copy";
    }, 2000);
  });
  listing.before(button);
}
