/* What Python waits for in place of a promise of JavaScript's.
 *
 * asyncio's futures are done in turns of the event loop, of which each costs a page
 * tens of microseconds. A Wait has what `pyodide.ffi.run_sync` asks a future for (a
 * future-like object as asyncio.isfuture() knows them), and is done within the call
 * that wakes it, in which no Python runs: an interrupt finds nothing half done.
 */
#ifndef DLW_WAIT_H_
#define DLW_WAIT_H_

#include "bridge.h"

/* A new reference to the type `_Wait`; NULL with an exception. */
PyObject *dlw_wait_type(PyObject *module);

/* Ends the wait of this number: its result() is `ok` (0 or 1). Returns 0 if nobody
 * waits any more, and if it was woken before. */
int32_t dlw_bridge_wake(uint32_t number, int32_t ok);

#endif
