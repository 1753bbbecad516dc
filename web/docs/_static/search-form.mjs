// The site's policy lets no form lead anywhere: the one that searches is a link made here.
addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "get" || !form.elements.q) return;
  event.preventDefault();
  const query = new URLSearchParams(new FormData(form));
  location.assign(`${form.action.split("?")[0]}?${query}`);
});
