"""Roads between towns: neighbours, a sparse matrix of distances, shortest ways."""

import numpy as np
from scipy import linalg, optimize, sparse, spatial
from scipy.sparse import csgraph
from scipy.sparse import linalg as sparse_linalg

rng = np.random.default_rng(21)
towns = rng.random((30, 2)) * 100  # a Tensor
goods = rng.random(30)  # a Tensor
tree = spatial.KDTree(towns)
lengths, nearest = tree.query(towns, k=4)
around = tree.query_ball_point(towns[0], 25)
hull = spatial.ConvexHull(towns).vertices
mesh = spatial.Delaunay(towns).simplices
table = spatial.distance.squareform(spatial.distance.pdist(towns))
roads = np.repeat(np.arange(30, dtype="int32"), 3)  # a Tensor
ends = nearest[:, 1:].ravel().astype("int32")  # a Tensor
weights = lengths[:, 1:].ravel()  # a Tensor
graph = sparse.coo_array((weights, (roads, ends)), shape=(30, 30)).tocsr()
direct = sparse.csr_array((weights, ends, np.arange(0, 91, 3)), shape=(30, 30))
(graph - direct).nnz
count, component = csgraph.connected_components(graph, directed=False)
shortest = csgraph.shortest_path(graph, directed=False, indices=[0])
spanning = csgraph.minimum_spanning_tree(graph).sum()
demand = graph @ goods
laplacian = csgraph.laplacian(graph + graph.T) + sparse.eye_array(30)
solution, status = sparse_linalg.cg(laplacian, goods, rtol=1e-10)
exact = linalg.solve(laplacian.toarray(), goods)
chosen = optimize.linear_sum_assignment(table[:5, 5:10])
center = optimize.minimize(lambda p: ((p - np.asarray(towns)) ** 2).sum(), towns[0]).x
moved = spatial.procrustes(towns, np.asarray(towns)[::-1])
turn = spatial.transform.Rotation.from_rotvec(towns.reshape((20, 3)))
turn.mean().as_quat(), turn[0].apply(np.eye(3))
sparse.block_diag([towns[:2], towns[2:4]]).toarray()
sparse.diags_array(goods).toarray().trace()
