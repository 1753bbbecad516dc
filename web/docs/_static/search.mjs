// Weights for Sphinx's search, which finds pages by their words alone: phrases of readers, titles and
// exact names of functions come first, pages that mention everything come last.
import { lists, phrases } from "./search-words.mjs";

const BEST = 1000;

/** The words of a text, without endings of plurals. */
function wordsOf(text) {
  const found = text.toLowerCase().match(/[\p{Letter}\p{Number}_.+-]+/gu) ?? [];
  return new Set(found.map((word) => word.replace(/(?<=[a-z]{3})s$/, "")));
}

/** From 0 to 1: 1 if a phrase has the query's words and no others, 0 if one of them is missing. */
function likeness(query, phrase) {
  const words = wordsOf(phrase);
  for (const word of query) {
    if (!words.has(word)) return 0;
  }
  return query.size / words.size;
}

/** How well a page answers the query by its phrases and titles. */
function weightOf(query, name, title) {
  const known = [...(phrases[name] ?? []), title];
  return Math.max(...known.map((phrase) => likeness(query, phrase)));
}

/** A result of Sphinx with our score; see `Scorer.score` in its searchtools.js. */
function weigh(text, result) {
  const [name, title, , , score, , kind] = result;
  const own = title.split(".").at(-1).toLowerCase();
  if (kind === "object" && own === text.toLowerCase()) return score + BEST / 2;
  return lists.includes(name) ? score / 10 : score;
}

/** Replaces Sphinx's order of results, which is from the worst to the best. */
function improve(search) {
  const perform = search._performSearch;
  search._performSearch = (text, ...terms) => {
    const query = wordsOf(text);
    const found = perform(text, ...terms);
    for (const result of found) result[4] = weigh(text.trim(), result);
    const { docnames, filenames, titles } = search._index;
    for (const [i, name] of docnames.entries()) {
      const weight = query.size ? weightOf(query, name, titles[i]) : 0;
      if (weight === 0) continue;
      const same = ([page, , anchor, , , , kind]) =>
        page === name && anchor === "" && kind !== "object";
      found.splice(0, found.length, ...found.filter((result) => !same(result)));
      found.push([name, titles[i], "", null, BEST * weight, filenames[i], "title"]);
    }
    return found.sort((a, b) => a[4] - b[4]);
  };
}

// A global constant of Sphinx's script, on the search page alone.
if (typeof Search !== "undefined") improve(Search);
