// The page's side of server.py: squares what arrives on the GPU, and sends the result back.
import { webgpu } from "dlpack-web";
import { overSocket } from "dlpack-web-page/wire";

const status = document.querySelector("#status");
const token = location.hash.slice(1);
const device = await webgpu.requestDevice();
const square = new webgpu.ElementwiseKernel(device, {
  inputs: "f32 x",
  outputs: "f32 y",
  operation: "y = x * x",
});

function connect() {
  const socket = new WebSocket(`ws://${location.host}/tensors?token=${encodeURIComponent(token)}`);
  socket.addEventListener("open", () => {
    status.textContent = "connected";
  });
  socket.addEventListener("close", ({ code, reason }) => {
    status.textContent = `not connected ${reason}`;
    if (code === 4000) return; // another page has the server
    setTimeout(() => wire.reconnect(connect()), 500);
  });
  return socket;
}

async function compute({ tensor }) {
  const y = square.run([tensor]);
  try {
    const remote = wire.send("y", y);
    await remote.ready;
    remote.free(); // the server has compared it
  } finally {
    y.release();
  }
}

const wire = overSocket(connect(), { device, ontensor: compute });
