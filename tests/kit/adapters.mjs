// Which adapters the kit takes, and what helps where it takes none.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import process from "node:process";

const SOFTWARE = /llvmpipe|lavapipe|swiftshader|softpipe|software|subzero|microsoft basic/i;

/** Why an implementation is not run: what it told of itself, by host.mjs. null: it is. */
export function refusal({ adapter, webgpu, compiler }, words, allowed) {
  if (!adapter) return "no adapter";
  if (!compiler.includes(words)) {
    return `another implementation answers: its compiler says ${JSON.stringify(compiler)}`;
  }
  if (allowed || !isSoftware({ adapter, webgpu })) return null;
  return `only a software adapter: ${webgpu || "one without a name"}`;
}

/** What has no name cannot be told from software. */
export function isSoftware({ adapter, webgpu }) {
  return SOFTWARE.test(`${webgpu} ${adapter.device}`) || adapter.isFallbackAdapter || !webgpu;
}

/** The files that name Vulkan's drivers to its loader, where it looks for them. */
function drivers() {
  const named = process.env.VK_DRIVER_FILES ?? process.env.VK_ICD_FILENAMES;
  if (named)
    return named.split(":").map((file) => `${file}${existsSync(file) ? "" : " (missing)"}`);
  const folders = ["/etc", ...(process.env.XDG_DATA_DIRS ?? "").split(":")];
  return folders
    .map((folder) => `${folder}/vulkan/icd.d`)
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => readdirSync(folder).map((name) => `${folder}/${name}`));
}

/** For where nothing runs. `software`: at least that was there. */
export function advice(software) {
  const found = drivers();
  const lines = [
    `Drivers for Vulkan, by the files that name them: ${found.join(", ") || "none"}.`,
    "Needed is a GPU whose driver speaks Vulkan: for NVIDIA's the distribution's package of the driver",
    "with its OpenGL and Vulkan part (Debian: nvidia-driver, nvidia-vulkan-icd; Ubuntu: libnvidia-gl-NNN),",
    "in a container also NVIDIA_DRIVER_CAPABILITIES=all; for AMD's and Intel's mesa-vulkan-drivers;",
    "and permission to open /dev/nvidia* or /dev/dri/render*. VK_DRIVER_FILES=FILE.json names a driver",
    "by hand.",
  ];
  if (software)
    lines.push("With --software the kit runs on software, and its figures mean nothing.");
  return lines.join("\n");
}

const read = (file) => (existsSync(file) ? readFileSync(file, "utf8") : "");

/** The machine, as far as it matters to figures. */
export function machine() {
  const nvidia = /NVRM version: *(.*)/.exec(read("/proc/driver/nvidia/version"))?.[1];
  return {
    system: `Linux ${release()}`,
    processor: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memory_bytes: totalmem(),
    drivers: drivers(),
    nvidia: nvidia ?? null,
  };
}

/** Bytes of memory that are free, or can be. */
export function memoryAvailable() {
  const kb = /^MemAvailable: *(\d+) kB/m.exec(read("/proc/meminfo"))?.[1];
  return kb === undefined ? totalmem() : 1024 * Number(kb);
}
