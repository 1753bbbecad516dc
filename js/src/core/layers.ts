/** The modules above that tensors use, which register themselves. */
import type {
  AsyncExchangeRequest,
  Exchange,
  Exchangeable,
  ExchangeRequest,
  Needs,
} from "../exchange/types.js";
import type { AnyTypedArray } from "./dtype.js";
import { UnsupportedError } from "./errors.js";
import type { AbortSignal, GPUBuffer, GPUDevice } from "./globals.js";
import type { ManagedTensor } from "./managed.js";
import type { FromGPUBufferOptions, ToOptions } from "./options.js";

/** What webgpu/ does for tensors. */
export interface DeviceLayer {
  upload(tensor: ManagedTensor, device: GPUDevice, options: ToOptions): ManagedTensor;
  write(target: ManagedTensor, source: ManagedTensor): void;
  /** Reads tensors into outs, or new arrays; once `signal` is aborted, nobody sees its errors. */
  read<O extends AnyTypedArray | ManagedTensor>(
    tensors: readonly ManagedTensor[],
    outs: readonly (O | undefined)[],
    signal?: AbortSignal,
  ): Promise<(O | AnyTypedArray)[]>;
  fromBuffer(buffer: GPUBuffer, options: FromGPUBufferOptions): ManagedTensor;
  bufferOf(tensor: ManagedTensor): GPUBuffer;
  /** Its buffer for foreign code, until the tensor is released. */
  exportBuffer(tensor: ManagedTensor): GPUBuffer;
  /** Bytes from element 0 on that only the tensor uses. */
  capacityOf(tensor: ManagedTensor): number;
  /** The `fault` of a tensor's exchange; throws the fault that is known already. */
  faultOf(tensor: ManagedTensor): () => Promise<Error | null> | null;
  /** Calls `fault` of an exchange, and adds its result to the elements of the imported tensor. */
  joinFault(tensor: ManagedTensor, fault: () => unknown): void;
  /** A hold on a GPU tensor that meets the needs of a consumer: the same memory, or one copy. */
  fit(tensor: ManagedTensor, needs: Needs, copy: boolean | undefined): ManagedTensor;
  /** A CPU tensor's elements on a device, meeting those needs. */
  fitUpload(tensor: ManagedTensor, device: GPUDevice, needs: Needs): ManagedTensor;
}

/** What exchange/ does for tensors. */
export interface ExchangeLayer {
  produce(tensor: ManagedTensor, request?: ExchangeRequest): Exchange;
  produceAsync(tensor: ManagedTensor, request?: AsyncExchangeRequest): Promise<Exchange>;
  take(x: Exchangeable): ManagedTensor;
}

let devices: DeviceLayer | null = null;
let exchanges: ExchangeLayer | null = null;

export function registerDeviceLayer(layer: DeviceLayer): void {
  devices = layer;
}

export function registerExchangeLayer(layer: ExchangeLayer): void {
  exchanges = layer;
}

/** The registered layer; throws if the bundle lacks it. */
export function deviceLayer(): DeviceLayer {
  if (devices !== null) return devices;
  throw new UnsupportedError('WebGPU needs import "dlpack-web"');
}

export function exchangeLayer(): ExchangeLayer {
  if (exchanges !== null) return exchanges;
  throw new UnsupportedError('exchanges need import "dlpack-web/exchange"');
}
