/** Generated from tools/tables by `make generate`: do not edit. */

export const WIDTH = 64;
export const PER_INVOCATION = 4;
export const OURS = "f32 i32 u32 f16 i n main array arrayLength vec3u vec4u";
export const IN_REDUCTIONS = "a b vec2f vec4f vec2i vec4i vec2u vec4u";
export const IN_MODULE = "min workgroupBarrier uniform storage workgroup read read_write";
export const ELEMENTWISE = `$bindings

fn _element(i: u32, n: u32) {
$load
$operation
}

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) at: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) local: u32,
) {
  let group = at.x + at.y * groups.x;
  let n = $n;
  let first = group * 256;
  let end = min(first + 256, n);
  for (var i = first + local; i < end; i += 64) {
    _element(i, n);
  }
}
`;
export const REDUCTION = `$bindings
var<workgroup> _shared: array<$type, 64>;

fn _identity() -> $type {
$identity
}

fn _map(i: u32, n: u32, _J: u32) -> $type {
$map
}

fn _reduce(a: $type, b: $type) -> $type {
$reduce
}

fn _finish(i: u32, n: u32, _at: u32, a: $type) {
$finish
}

fn _at(k: u32, step: u32) -> u32 { return $at; }

fn _offset(number: u32, last: u32, part: u32) -> u32 {
  var left = number;
  var sum = 0u;
  for (var at = 2u; at < last; at++) {
    let extent = _sizes[at][part];
    sum += left % extent * _sizes[at][part + 1];
    left /= extent;
  }
  return sum + left * _sizes[last][part + 1];
}

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) at: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) local: u32,
) {
  let group = at.x + at.y * groups.x;
  let s = _sizes[0];
  let t = _sizes[1];
  let step = _sizes[2].w;
  let piece = group * (64 / s.y) + local / s.y;
  let lane = local % s.y;
  let used = piece < s.x * s.w;
  let output = piece % s.x;
  var value = _identity();
  if (used) {
    let start = _offset(output, t.z, 0);
    let first = piece / s.x * s.z;
    let end = min(first + s.z, t.x);
    var k = first + lane;
    for (; k + 7 * s.y < end; k += 8 * s.y) {
      let v0 = _map(start + _at(k + 0 * s.y, step), t.y, k + 0 * s.y);
      let v1 = _map(start + _at(k + 1 * s.y, step), t.y, k + 1 * s.y);
      let v2 = _map(start + _at(k + 2 * s.y, step), t.y, k + 2 * s.y);
      let v3 = _map(start + _at(k + 3 * s.y, step), t.y, k + 3 * s.y);
      let v4 = _map(start + _at(k + 4 * s.y, step), t.y, k + 4 * s.y);
      let v5 = _map(start + _at(k + 5 * s.y, step), t.y, k + 5 * s.y);
      let v6 = _map(start + _at(k + 6 * s.y, step), t.y, k + 6 * s.y);
      let v7 = _map(start + _at(k + 7 * s.y, step), t.y, k + 7 * s.y);
      value = _reduce(value, _reduce(
        _reduce(_reduce(v0, v1), _reduce(v2, v3)), _reduce(_reduce(v4, v5), _reduce(v6, v7))
      ));
    }
    for (; k < end; k += s.y) {
      value = _reduce(value, _map(start + _at(k, step), t.y, k));
    }
  }
  _shared[local] = value;
  for (var half = s.y / 2; half > 0; half /= 2) {
    workgroupBarrier();
    if (lane < half) {
      _shared[local] = _reduce(_shared[local], _shared[local + half]);
    }
  }
  if (used && lane == 0) {
    _finish(output, t.y, piece, _shared[local]);
  }
}
`;
