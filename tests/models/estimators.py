"""Ten estimators of scikit-learn as skl2onnx writes them, with what scikit-learn itself says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from skl2onnx import to_onnx
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

SEED = 2026
SHOWN = 20


def made() -> dict[str, BaseEstimator]:
    """Small ones, by the names of their files."""
    forest = {"n_estimators": 8, "max_depth": 4, "random_state": SEED}
    return {
        "boosting": GradientBoostingClassifier(**forest),
        "forest": RandomForestClassifier(**forest),
        "forest_regressor": RandomForestRegressor(**forest),
        "kmeans": KMeans(3, n_init=1, random_state=SEED),
        "linear": LinearRegression(),
        "logistic": LogisticRegression(max_iter=500),
        "naive_bayes": GaussianNB(),
        "neighbors": KNeighborsClassifier(3),
        "network": make_pipeline(
            StandardScaler(),
            MLPRegressor(hidden_layer_sizes=(8,), random_state=SEED, max_iter=300),
        ),
        "pipeline": make_pipeline(StandardScaler(), PCA(2), SVC(probability=True)),
    }


def save(folder: Path) -> int:
    """Fits them and writes the models; returns how many there are."""
    iris, kinds = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[kinds]
    diabetes, progress = load_diabetes(return_X_y=True)
    arrays: dict[str, np.ndarray] = {}
    all_of_them = made()
    for name, estimator in all_of_them.items():
        regresses = name in ("forest_regressor", "linear", "network")
        x = (diabetes if regresses else iris).astype(np.float32)
        y = progress if regresses else (names if name == "logistic" else kinds)
        estimator.fit(x, y)
        (folder / f"sk_{name}.onnx").write_bytes(
            to_onnx(estimator, x[:1]).SerializeToString()
        )
        shown = x[:: len(x) // SHOWN][:SHOWN]
        arrays[f"{name}.x"] = shown
        arrays[f"{name}.predicted"] = estimator.predict(shown)
        if hasattr(estimator, "predict_proba"):
            arrays[f"{name}.probabilities"] = estimator.predict_proba(shown)
    np.savez(folder / "estimators.npz", names=np.array(list(all_of_them)), **arrays)
    return len(all_of_them)
