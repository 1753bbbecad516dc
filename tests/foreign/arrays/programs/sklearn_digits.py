"""Learning to tell digits: scikit-learn's usual steps, with a kernel for the features."""

import kernels
import numpy as np
from sklearn import datasets, metrics
from sklearn.cluster import KMeans
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC

digits = datasets.load_digits(n_class=3)
pixels = digits.data[:120].astype("float32")  # a Tensor
target = digits.target[:120]  # a Tensor
weights = np.linspace(0.5, 1.5, 120)  # a Tensor

features = kernels.scaled(pixels, 0.0625)
scaled = StandardScaler().fit_transform(features)
pca = PCA(8, svd_solver="full").fit(features)
reduced = pca.transform(features)  # a Tensor
pca.explained_variance_ratio_
groups = KMeans(3, n_init=2, random_state=0).fit_predict(reduced)
metrics.adjusted_rand_score(target, groups), metrics.silhouette_score(reduced, groups)
model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
model.fit(features, target)
model.score(features, target)
chances = model.predict_proba(features[:4])
near = KNeighborsClassifier(3).fit(reduced, target).predict(reduced)
print(metrics.classification_report(target, near))
metrics.confusion_matrix(target, near)
forest = RandomForestClassifier(8, random_state=0).fit(
    pixels, target, sample_weight=weights
)
forest.feature_importances_
machine = SVC(gamma="scale").fit(reduced, target).support_
kernel = metrics.pairwise.rbf_kernel(reduced[:5], reduced[5:9])
scores = cross_val_score(LogisticRegression(max_iter=300), reduced, target, cv=3)
parts = train_test_split(reduced, target, random_state=1, test_size=0.25)
parts[0].shape, parts[3].shape
ridge = Ridge().fit(reduced, weights, sample_weight=weights).coef_
both = TransformedTargetRegressor(Ridge(), func=np.log1p, inverse_func=np.expm1)
both.fit(reduced, weights).predict(reduced[:3])
more = PolynomialFeatures(2).fit_transform(reduced[:2])
curve = metrics.roc_curve(np.equal(target, 1), reduced[:, 0])
