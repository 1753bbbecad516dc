"""A heart's beat: scipy.signal before and after a kernel, and the statistics of its peaks."""

import kernels
import numpy as np
from scipy import fft, interpolate, signal, stats

rate = 128
time = np.arange(4 * rate) / rate  # a Tensor
rng = np.random.default_rng(5)
beat = 100 * np.sin(2 * np.pi * 1.25 * np.arange(512) / rate) ** 15
trace = (np.round(beat + rng.normal(0, 4, 512)) / 128).astype("float32")  # a Tensor

b, a = signal.butter(3, 20, fs=rate)
filtered = signal.filtfilt(b, a, trace)
level = signal.detrend(trace, type="constant")
envelope = np.abs(signal.hilbert(trace))
quiet = signal.savgol_filter(trace, 11, 3)
half = kernels.scaled(trace, 0.5)
slopes = kernels.slopes(half)
peaks, found = signal.find_peaks(half, height=0.2, distance=rate // 4)
when = time[peaks[0]]
widths = signal.peak_widths(half, peaks, rel_height=0.5)
spacing = np.diff(np.asarray(time)[peaks])
frequencies, power = signal.welch(trace, fs=rate, nperseg=256)
spectrum = fft.rfft(half)
back = fft.irfft(spectrum, n=512)
f, t, density = signal.spectrogram(half, rate, nperseg=64)
again = signal.resample(trace, 128)
lags = signal.correlation_lags(len(trace), len(half), mode="same")
delay = lags[np.argmax(signal.correlate(trace, half, mode="same"))]
curve = interpolate.interp1d(time, trace, kind="linear")(0.31)
spline = interpolate.make_interp_spline(time, trace, k=3)
spline([0.1, 0.2, 0.3])
stats.describe(trace), stats.pearsonr(trace, half)
np.trapezoid(trace, time), np.percentile(trace, [5, 50, 95])
signal.sosfilt(signal.butter(2, 8, fs=rate, output="sos"), slopes)
