"""Operator tests of the package `onnx` (tests/models/node_files.py), as its own runner judges them: a
sample of those that onnxruntime-web passes."""

import io

import numpy as np
import pytest
from pyodide.ffi import run_sync
from pyodide.http import pyfetch

import dlpack_web_onnxruntime as ort

pytestmark = pytest.mark.usefixtures("nothing_leaks")

SAMPLE = """
abs add_int8 and2d argmax_keepdims_example
argmin_default_axis_example_select_last_index
argmin_no_keepdims_example_select_last_index
attention_23_boolmask_fullymasked_row_nan_robustness_expanded
attention_3d_diff_heads_with_past_and_present_expanded
attention_3d_gqa_with_past_and_present_expanded
attention_3d_with_past_and_present_qk_matmul_bias attention_4d_attn_mask_4d
attention_4d_diff_heads_sizes_scaled attention_4d_gqa attention_4d_gqa_softcap
attention_4d_softcap_neginf_mask_expanded
attention_4d_with_past_and_present_qk_matmul_bias_4d_mask_causal_expanded
attention_local_window_ext_cache_rank3_head_mask_expanded averagepool_2d_default
averagepool_3d_dilations_large_count_include_pad_is_0_ceil_mode_is_True
bitwise_or_ui8_bcast_4v3d castlike_FLOAT16_to_FLOAT_expanded
center_crop_pad_pad_expanded clip_default_min col2im concat_2d_axis_0
constantofshape_int_zeros convtranspose_dilations det_nd
dynamicquantizelinear_max_adjusted elu equal_uint32 flatten_axis1
flexattention_scaled_expanded_ver26 gather_0 gelu_default_2 gemm_default_vector_bias
gridsample_bilinear_align_corners_0_additional_1 group_normalization_epsilon
hardsigmoid_default hardmax_negative_axis lrn layer_normalization_2d_axis0_expanded
layer_normalization_3d_axis0_epsilon_expanded_ver18
layer_normalization_3d_axis_negative_2_epsilon_expanded_ver18
layer_normalization_4d_axis3 layer_normalization_4d_axis_negative_4 less_bcast
logsoftmax_default_axis_expanded lppool_2d_same_upper max_float16 maxpool_1d_default
maxpool_2d_uint8 mvn_expanded min_two_inputs neg nllloss_NCd1_weight_ii_expanded
nllloss_NCd1d2_with_weight_reduction_mean_expanded
nonmaxsuppression_center_point_box_format not_3d or_bcast4v4d pow_bcast_array
qlinearmatmul_2D_int8_float32 rms_normalization_2d_axis_negative_1_expanded
rms_normalization_3d_axis_negative_2_epsilon_expanded
rms_normalization_4d_axis_negative_2 simple_rnn_reverse
reduce_l1_default_axes_keepdims_example_expanded
reduce_l1_negative_axes_keep_dims_example reduce_l2_empty_set reduce_max_bool_inputs
reduce_mean_default_axes_keepdims_random reduce_min_keepdims_example
reduce_prod_negative_axes_keepdims_random
reduce_sum_square_default_axes_keepdims_example
reduce_sum_square_keepdims_random_expanded reshape_negative_dim
resize_tf_crop_and_resize_axes_2_3 resize_upsample_sizes_cubic
rotary_embedding_no_position_ids_rotary_dim scatter_with_axis
scatternd_max_with_element_indices shape_clip_end shrink_soft_expanded_ver18
slice_default_steps softmax_axis_2_expanded softmax_negative_axis_expanded
sce_NCd1d2d3_sum_weight_high_ii_log_prob_expanded sce_mean_3d_log_prob_expanded
sce_mean_no_weight_ii_4d_log_prob_expanded sce_mean_weight_ii_4d_log_prob
sce_none_weights_expanded softsign_example_expanded_ver18 split_equal_parts_1d_opset13
split_zero_size_splits_opset18 sub tensorscatter_3d
thresholdedrelu_example_expanded_ver18 transpose_all_permutations_1 tril_pos triu_zero
unsqueeze_two_axes
"""
NAMES = SAMPLE.split()
# The software GPU has no shader-f16.
ON_CPU = ["castlike_FLOAT16_to_FLOAT_expanded", "max_float16"]


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        *((name, "CPUExecutionProvider") for name in NAMES),
        *((n, "WebGpuExecutionProvider") for n in NAMES if n not in ON_CPU),
    ],
)
def test_an_operator_gives_what_onnx_expects(name, provider):
    data = run_sync(run_sync(pyfetch(f"/nodes/test_{name}.npz")).bytes())
    with np.load(io.BytesIO(data)) as case:
        feeds = {key[3:]: case[key] for key in case.files if key.startswith("in ")}
        expected = [case[key] for key in case.files if key.startswith("out ")]
        model, within = case["model"].tobytes(), case["within"]
    session = ort.InferenceSession(model, providers=[provider])
    wanted = {each.name for each in session.get_inputs()}
    results = session.run(None, {k: v for k, v in feeds.items() if k in wanted})
    assert len(results) == len(expected)
    for result, array in zip(results, expected, strict=True):
        assert (result.dtype, result.shape) == (array.dtype, array.shape)
        np.testing.assert_allclose(result, array, *within)
