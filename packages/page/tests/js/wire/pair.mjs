import { joined, Wire } from "../../../js/dist/wire/index.js";

/** Two ends that are connected, their queues, and what carries all frames. */
export function pair(options = {}) {
  const queues = [[], []];
  const freed = [];
  const onfree = (name) => freed.push(name);
  const ends = queues.map(
    (queue) => new Wire({ ...options, onfree, send: (h, p) => queue.push(joined(h, p)) }),
  );
  const carry = () => {
    while (queues.some((queue) => queue.length > 0)) {
      queues.forEach((queue, at) => {
        if (queue.length > 0) ends[1 - at].receive(queue.shift());
      });
    }
  };
  ends[0].connect();
  carry();
  return { ends, queues, carry, freed };
}
