"""Makes the small generated data sets of the examples; needs numpy. Run in this folder: python3 generate.py"""

import numpy as np

rng = np.random.default_rng(7)

# A directed graph of 60 nodes: a ring, so that most are reached, and random edges; nodes 50 to 59 have no way out.
source = np.concatenate([np.arange(50), rng.integers(0, 50, 190)])
target = np.concatenate([(np.arange(50) + 1) % 60, rng.integers(0, 60, 190)])
np.save("graph_src.npy", source.astype(np.int64))
np.save("graph_dst.npy", target.astype(np.int64))

# Three clouds of points in the plane, the first three points one of each.
centres = np.array([[0.0, 0.0], [5.0, 1.0], [1.0, 6.0]])
member = np.concatenate([[0, 1, 2], rng.integers(0, 3, 297)])
spread = np.array([[1.0, 0.3], [0.5, 1.2], [0.8, 0.8]])
np.save("blobs.npy", centres[member] + spread[member] * rng.normal(size=(300, 2)))

# A function of the plane at 120 points in four parts of 30, the points of a part near their centre.
centre = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
part = rng.permutation(np.repeat(np.arange(4), 30))
x = centre[part] + 0.5 * rng.normal(size=(120, 2))
z = rng.uniform(-1.5, 1.5, size=(40, 2))
f = lambda p: np.sin(2 * p[:, 0]) + p[:, 0] * p[:, 1]
np.save("ridge_x.npy", x)
np.save("ridge_y.npy", f(x) + 0.05 * rng.normal(size=120))
np.save("ridge_z.npy", z)
np.save("ridge_part.npy", part.astype(np.int64))
np.save("ridge_centre.npy", centre)

# Two classes in the square, told apart by the sign of a function; 2 in 100 labels of the training points are wrong.
rng = np.random.default_rng(11)
side = lambda p: np.sign(np.sin(2.5 * p[:, 0]) + np.cos(2 * p[:, 1]) + 0.6 * np.sin(3 * p[:, 0] * p[:, 1]))
x = rng.uniform(-2, 2, size=(2000, 2))
wrong = rng.random(2000) < 0.02
z = rng.uniform(-2, 2, size=(2000, 2))
np.save("classes_x.npy", x)
np.save("classes_y.npy", np.where(wrong, -side(x), side(x)))
np.save("classes_z.npy", z)
np.save("classes_t.npy", side(z))

# A strongly non-linear function of four variables, with noise in the training values only.
rng = np.random.default_rng(12)
f = lambda p: (
    np.sin(3 * p[:, 0]) * np.cos(2 * p[:, 1]) + 0.5 * p[:, 2] ** 2 + 0.3 * np.sin(7 * p[:, 3] * p[:, 0])
)
x = rng.uniform(-2, 2, size=(2048, 4))
z = rng.uniform(-2, 2, size=(512, 4))
np.save("waves_x.npy", x)
np.save("waves_y.npy", f(x) + 0.05 * rng.normal(size=2048))
np.save("waves_z.npy", z)
np.save("waves_t.npy", f(z))
np.save("waves_s.npy", np.array([0.3, 0.5, 0.8, 1.2, 2.0]))

# The same training points in eight parts.
x = np.load("classes_x.npy")
np.save("classes_parts_x.npy", x.reshape(8, 250, 2))
np.save("classes_parts_y.npy", np.load("classes_y.npy").reshape(8, 250))

# Ratings of 120 items by 200 people: each has three hidden traits and a bias, and every rating is off by 0.3 (standard deviation).
rng = np.random.default_rng(13)
people, items, rated = 200, 120, 10_000
p, q = rng.normal(size=(people, 3)), rng.normal(size=(items, 3))
score = 3.5 + 0.4 * p @ q.T + rng.normal(0, 0.4, size=(people, 1)) + rng.normal(0, 0.4, size=(1, items))
pairs = rng.permutation(people * items)[:rated]
user, item = np.divmod(pairs, items)
stars = score[user, item] + rng.normal(0, 0.3, size=rated)
for name, rows in [("train", slice(0, 8000)), ("test", slice(8000, rated))]:
    np.save(f"ratings_{name}_user.npy", user[rows].astype(np.int32))
    np.save(f"ratings_{name}_item.npy", item[rows].astype(np.int32))
    np.save(f"ratings_{name}_stars.npy", stars[rows].astype(np.float32))

# Six fields of 30 words each, words of a field as common as 1, 1/2, 1/3, …; a weight a word says how likely the answer is yes. Words are
# numbered through all fields, so that a row is a vector of 180 zeros and ones, of which six are ones, written as the places of the ones.
rng = np.random.default_rng(14)
fields, words = 6, 30
share = 1 / np.arange(1, words + 1)
weight = rng.normal(0, 1.5, size=fields * words)
places = rng.choice(words, size=(5000, fields), p=share / share.sum()) + words * np.arange(fields)
chance = 1 / (1 + np.exp(-weight[places].sum(1)))
answer = rng.random(5000) < chance
for name, rows in [("train", slice(0, 4000)), ("test", slice(4000, 5000))]:
    np.save(f"words_{name}_x.npy", places[rows].astype(np.int32))
    np.save(f"words_{name}_y.npy", answer[rows].astype(np.float32))
print("best accuracy on the words of the test set:", np.mean((chance > 0.5)[4000:] == answer[4000:]))

# Links of 300 pages, most of them to pages that many link to already; some pages have none.
links, popular = set(), [0]
for page in range(1, 300):
    if page % 29:
        for _ in range(rng.integers(1, 6)):
            to = int(rng.choice(popular)) if rng.random() < 0.7 else int(rng.integers(0, page))
            links.add((page, to))
            popular.append(to)
    popular.append(page)
with open("links.mtx", "w", encoding="ascii") as file:
    file.write("%%MatrixMarket matrix coordinate pattern general\n% Links of 300 made-up pages: the page of the row links to that of the column.\n")
    file.write(f"300 300 {len(links)}\n")
    file.writelines(f"{page + 1} {to + 1}\n" for page, to in sorted(links))

# The documentation of this project as bytes; what is not ASCII is left out.
pages = ["stdlib/nn.ein", "stdlib/optim.ein", "stdlib/schedule.ein", "stdlib/README.md", "compiler/STYLE.md", "compiler/ADDING.md"]
pages += ["compiler/ARCHITECTURE.md", "compiler/PLAN.md", "README.md", "compiler/LANGUAGE.md"]
text = "".join(open(f"../../{page}", encoding="utf-8").read() for page in pages)
np.save("text.npy", np.frombuffer(text.encode("ascii", "ignore"), dtype=np.uint8))
