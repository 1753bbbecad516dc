// Starts Pyodide with the memory that Python has once it has started, kept by tools/snapshot.py:
// two seconds less of a reader's processor, for 6 MB more of the network.

async function unpacked(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  const plain = response.body.pipeThrough(new DecompressionStream("gzip"));
  return new Response(plain).arrayBuffer();
}

// What Python asks as it starts, and the kept one asked where it was made.
const AGAIN = `
import _locale, os, random, sys, time

sys.path.remove("")  # each of the two starts has put one there
random.seed()
os.environ["LANG"] = language
_locale.setlocale(_locale.LC_CTYPE, "")
# As CPython's time module does: in the middle of two halves of a year.
year = 31_557_600
start = int(time.time()) // year * year
halves = [time.localtime(start), time.localtime(start + year // 2)]
halves.sort(key=lambda half: half.tm_gmtoff)
time.timezone, time.altzone = (-half.tm_gmtoff for half in halves)
time.tzname = tuple(half.tm_zone for half in halves)
time.daylight = int(time.timezone != time.altzone)
`;

function askAgain(pyodide) {
  const { HEAPU32, __tzset_js, _timezone, _daylight, _tzname } = pyodide._module;
  const [standard, summer] = HEAPU32.subarray(_tzname >> 2);
  __tzset_js(_timezone, _daylight, standard, summer); // C's own, for localtime()
  const language = `${navigator.language.replace("-", "_")}.UTF-8`;
  const globals = pyodide.toPy({ language });
  pyodide.runPython(AGAIN, { globals });
  globals.destroy();
}

/**
 * What `loadPyodide` resolves to.
 *
 * @param folder - the URL of a folder of the site with Pyodide, which ends in a slash
 */
export async function startPyodide(folder) {
  // The memory was made where JavaScript can suspend WebAssembly, and Python keeps that.
  const suspends = "Suspending" in WebAssembly;
  // Where the network is slow, and the browser knows it, the processor is faster.
  const { saveData, effectiveType } = navigator.connection ?? {};
  const kept = suspends && !saveData && !/[23]g/.test(effectiveType);
  const memory = kept && unpacked(`${folder}snapshot.bin`);
  if (kept) memory.catch(() => {}); // seen below
  const { loadPyodide } = await import(`${folder}pyodide.mjs`);
  if (!kept) return loadPyodide({ indexURL: folder });
  try {
    const pyodide = await loadPyodide({ indexURL: folder, _loadSnapshot: memory });
    askAgain(pyodide);
    return pyodide;
  } catch (error) {
    console.info(`Python starts from nothing: ${error.message}`);
    return loadPyodide({ indexURL: folder });
  }
}
