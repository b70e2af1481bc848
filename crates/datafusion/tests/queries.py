"""Writes tables, arrays and queries for the test `duckdb.rs`, and the results of DuckDB.

Arguments: the seed and the number of queries. DuckDB gets the rows from lists, and not from the files. Written to the
current directory: `p*.b2z` (tables), `r*.arrow` (rows that the test writes to tables), `a*.b2z` and `a*.b2nd` (arrays),
`plan.json` (what they are), `results.json` (a query in each line, with the rows of DuckDB).
"""

import dataclasses
import datetime
import json
import math
import random
import sys

import blosc2 as b2
import blosc2.schema as S
import duckdb
import numpy as np
import pyarrow as pa

SEED, QUERIES = int(sys.argv[1]), int(sys.argv[2])
rng = random.Random(SEED)
database = duckdb.connect()
database.execute("SET threads = 2")

INTEGERS = {f"{sign}int{bits}": (0 if sign else -(1 << bits - 1), (1 << bits - (0 if sign else 1)) - 1)
            for sign in ["", "u"] for bits in [8, 16, 32, 64]}
WORDS = ["a", "ß", "ccc", "", "Zürich", "zz"]
SIZES = [0, 1, 2, 5, 37, 100, 700, 1000, 2048, 5003, 19_997]
SECONDS = 1_700_000_000
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class Column:
    """A column: its kind, the kind of null values, and its random items."""

    def __init__(self, name, type, nulls):
        self.name, self.type, self.nulls = name, type, nulls
        self.is_int = type in INTEGERS
        self.is_float = type.startswith("float")
        self.is_text = type in ("utf8", "string", "dictionary")
        self.unit = type[10:] if type.startswith("timestamp") else None
        # An own sentinel.
        self.null_value = 7 if self.is_int else -1.0 if self.is_float else "zz" if type in ("utf8", "string") else None

    def spec(self):
        nulls = {"nullable": True} if self.nulls else {}
        if self.nulls in ("mask", "sentinel"):
            nulls["null_storage"] = self.nulls
        if self.nulls == "value" and self.null_value is not None:
            nulls["null_value"] = self.null_value
        if self.unit:
            return object, S.timestamp(unit=self.unit, **nulls), 0
        if self.type == "dictionary":
            return str, S.dictionary(nullable=bool(self.nulls)), ""
        if self.type == "string":
            return str, S.string(max_length=8, **nulls), ""
        python = int if self.is_int else float if self.is_float else bool if self.type == "bool" else str
        return python, getattr(S, self.type)(**nulls), python()

    def arrow(self):
        if self.unit:
            return pa.timestamp(self.unit)
        types = {"dictionary": pa.dictionary(pa.int32(), pa.string()), "utf8": pa.string(), "bool": pa.bool_()}
        return types.get(self.type) or getattr(pa, self.type)()

    def item(self):
        item = self.any_item()
        is_null = self.nulls and (rng.random() < 0.15 or self.nulls == "value" and item == self.null_value)
        return None if is_null else item

    def any_item(self):
        if self.is_int:
            low, high = INTEGERS[self.type]
            # Sentinels are the smallest or largest integer.
            low, high = (low + 1, high - 1) if self.nulls else (low, high)
            small = max(low, -50), min(high, 50)
            return rng.choice([low, high]) if rng.random() < 0.02 else rng.randint(*small)
        if self.is_float:
            special = rng.random()
            if special < 0.1:
                # The sentinel of floats is NaN. There is no -0.0, which DuckDB orders with 0.0, and DataFusion before.
                return rng.choice([math.inf, -math.inf] + [math.nan] * 2 * (self.nulls != "sentinel"))
            return rng.randint(-400, 400) / 8 if special < 0.8 else float(np.float32(rng.uniform(1, 100)))
        if self.type == "bool":
            return rng.random() < 0.4
        if self.unit:
            # Microseconds at most, the precision of TIMESTAMP in DuckDB.
            unit = min(UNITS[self.unit], 10**6)
            return (SECONDS * unit + rng.randrange(10**7) * unit + rng.randrange(unit)) * (UNITS[self.unit] // unit)
        if self.type == "dictionary" or rng.random() < 0.5:
            return rng.choice(WORDS)
        return f"n° {rng.randrange(300)}"

    def of_python(self, item, spec):
        """The item as Python wants it: `extend` does not replace None by the sentinel of numbers and strings."""
        if item is None:
            return getattr(spec, "null_value", None)
        return np.datetime64(item, self.unit) if self.unit else item

    def literal(self):
        if self.is_int:
            return str(rng.randint(max(INTEGERS[self.type][0], -30), 30))
        if self.is_float:
            return rng.choice(["0.5", "-3.25", "40.0", "12.0"])
        if self.unit:
            return time_literal()
        return f"'{rng.choice(WORDS)}'"


def time_literal():
    return f"TIMESTAMP '{datetime.datetime(2023, 11, 14) + datetime.timedelta(seconds=rng.randrange(10**7))}'"


class Table:
    """Rows that both engines have. `unique` is a column with distinct values, which orders the rows."""

    def __init__(self, name, columns, unique, count):
        self.name, self.columns, self.unique, self.count = name, columns, unique, count

    def some(self, test):
        return [column for column in self.columns if test(column)]


def random_columns():
    """A schema: the key `id`, and a selection of columns in any order."""
    types = list(INTEGERS) + ["float32", "float64", "bool", "utf8", "string", "dictionary"]
    types += [f"timestamp_{unit}" for unit in UNITS]
    names = {"utf8": "Text", "bool": "flag", "dictionary": "word"}
    chosen = rng.sample(types, rng.randint(3, 9))
    columns = [Column(names.get(type, type), type, rng.choice([None, "default", "mask", "sentinel", "value"])) for type in chosen]
    columns.append(Column("id", rng.choice(["int64", "int32", "uint32"]), None))
    rng.shuffle(columns)
    return columns


def deletions(count):
    """The positions of deleted rows: none, some, all, or those of whole chunks."""
    kind = rng.randrange(5)
    if kind == 0:
        return []
    if kind == 1 and rng.random() < 0.4:
        return list(range(count))
    if kind == 2:
        start = rng.randrange(count + 1)
        return list(range(start, min(count, start + count // 2 + 1)))
    return [at for at in range(count) if rng.random() < 0.2]


def random_rows(columns, count, start):
    return [[start + at if column.name == "id" else column.item() for column in columns] for at in range(count)]


def arrow(columns, rows):
    arrays = [pa.array([row[at] for row in rows], column.arrow()) for at, column in enumerate(columns)]
    # The kind of columns of strings of a fixed length; other strings become `utf8`.
    kind = lambda column: {"blosc2:kind": "string[8]"} if column.type == "string" else None
    fields = [pa.field(column.name, column.arrow(), bool(column.nulls), kind(column)) for column in columns]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def add_to_duckdb(name, source):
    database.execute(f"CREATE TABLE {name} AS SELECT * FROM source")


seen = dict(deleted=0, nan=0, null=0, rows=0)


def note(rows, deleted):
    seen["deleted"] += deleted
    seen["rows"] += len(rows)
    for row in rows:
        seen["null"] += sum(item is None for item in row)
        seen["nan"] += sum(isinstance(item, float) and math.isnan(item) for item in row)


def size(at):
    """One table in seven has about 20,000 rows."""
    return SIZES[-1] - rng.randrange(50) if at % 7 == 6 else rng.choice(SIZES[:-1])


def write_table_of_python(at):
    name, columns, count = f"p{at}", random_columns(), size(at)
    fields = []
    for column in columns:
        python, spec, default = column.spec()
        fields.append((column.name, python, b2.field(spec, default=default)))
    Row = dataclasses.make_dataclass("Row", fields)
    path = name + ".b2z"
    table = b2.CTable(Row, urlpath=path, mode="w", expected_size=rng.choice([16, 1 << 11, 1 << 13, max(count, 1)]))
    kept, deleted, start = [], 0, 0
    parts = rng.choice([1, 1, 2, 3])
    for part in range(parts):
        new = random_rows(columns, count // parts + (count % parts if part == 0 else 0), start)
        start += len(new)
        if new:
            specs = {field.name: field.spec for field in table.schema.columns}
            cells = {c.name: [c.of_python(row[i], specs[c.name]) for row in new] for i, c in enumerate(columns)}
            # The validation of Python 4.14.1 fails if all strings of a column are null.
            table.extend(cells, validate=False)
        kept += new
        # Positions of Python count the rows that are left.
        gone = deletions(len(kept))
        if part + 1 < parts:
            # Python 4.14.1 reuses the row numbers of deleted last rows, but not their `utf8` strings: after the next
            # `extend`, the strings are in other rows, also when Python reads them.
            gone = [i for i in gone if i + 1 < len(kept)]
        if gone:
            table.delete(gone)
            gone = set(gone)
            kept = [row for i, row in enumerate(kept) if i not in gone]
            deleted += len(gone)
        if part + 1 < parts and rng.random() < 0.5:
            table.close()
            table = b2.CTable.open(path, mode="a")
    table.close()
    note(kept, deleted)
    add_to_duckdb(name, arrow(columns, kept))
    return Table(name, columns, "id", len(kept))


def hand_over_table(at):
    """A table that the test writes. The column `gone` marks the rows that it deletes."""
    name, columns, count = f"r{at}", random_columns(), size(at)
    rows = random_rows(columns, count, 0)
    gone = set(deletions(count))
    source = arrow(columns, rows)
    with pa.ipc.new_file(name + ".arrow", source.schema.append(pa.field("gone", pa.bool_(), False))) as file:
        marks = pa.array([i in gone for i in range(count)], pa.bool_())
        file.write_table(source.append_column(file_field, marks), max_chunksize=rng.choice([700, 5000, 30_000]))
    kept = [row for i, row in enumerate(rows) if i not in gone]
    note(kept, len(gone))
    add_to_duckdb(name, arrow(columns, kept))
    return Table(name, columns, "id", len(kept))


file_field = pa.field("gone", pa.bool_(), False)


def coordinates(axis, length):
    """Ascending, descending, unsorted or repeated coordinates."""
    items = [rng.randrange(-20, 20) + 40 * at for at in range(length)]
    kind = rng.choice(["ascending", "descending", "unsorted", "repeated"])
    if kind == "descending":
        items.reverse()
    elif kind == "unsorted":
        rng.shuffle(items)
    elif kind == "repeated":
        items = [rng.choice([-30, 10, 25]) for _ in items]
    if axis == "time":
        unit = rng.choice(["s", "ms", "us", "ns"])
        seconds = np.array([SECONDS + 86_400 * item for item in items], "M8[s]").astype(f"M8[{unit}]")
        return Column(axis, f"timestamp_{unit}", None), seconds
    if axis == "lat":
        return Column(axis, "float64", None), np.array(items) / 4
    return Column(axis, "int32", None), np.array(items, "i4")


def array_of(items, chunks):
    """An array. Chunks of one item are special chunks, if the array is created from this item."""
    first = items.flat[0] if items.size else 0
    kind = rng.randrange(3) if items.dtype.kind != "M" else 2
    if kind == 0 and items.size:
        items[:] = first
        return b2.full(items.shape, first, dtype=items.dtype, chunks=chunks)
    if kind == 1:
        array = b2.zeros(items.shape, dtype=items.dtype, chunks=chunks)
        half = items.shape[0] // 2
        items[half:] = 0
        if half:
            array[:half] = items[:half]
        return array
    if items.dtype.kind == "f" and rng.random() < 0.3:
        items[:] = np.nan
        return b2.full(items.shape, np.nan, dtype=items.dtype, chunks=chunks)
    return b2.asarray(items, chunks=chunks)


def write_arrays(at):
    """A store with arrays and coordinates, or each fourth time one array in a file."""
    name, axes = f"a{at}", 1 + at % 4
    axis_names = rng.sample(["time", "lat", "lon", "level"], axes)
    shape = [rng.randint(1, most) for most in [[3000], [60, 50], [17, 15, 11], [9, 8, 7, 6]][axes - 1] for most in [most]]
    chunks = [rng.randint(1, length) if axes > 1 else max(length // 3, 1) for length in shape]
    is_single = at % 5 == 4
    columns, arrays, seconds_of = [], {}, np.indices(shape).reshape(axes, -1)
    values = {}
    for axis, axis_name in enumerate(axis_names):
        if is_single or rng.random() < 0.2:
            column, items = Column(axis_name, "int64", None), np.arange(shape[axis])
        else:
            column, items = coordinates(axis_name, shape[axis])
            arrays[axis_name] = (b2.asarray(items), [axis_name])
        columns.append(column)
        values[axis_name] = items[seconds_of[axis]]
    kinds = {"rain": "int16", "temperature": "float32", "mask": "bool", "when": "timestamp_us"}
    for key in sorted(rng.sample(list(kinds), 1 if is_single else rng.randint(1, 3))):
        column = Column("value" if is_single else key, kinds[key], None)
        dtype = "M8[us]" if column.unit else column.type
        items = np.array([column.item() for _ in range(math.prod(shape))]).astype(dtype).reshape(shape)
        arrays[key] = (array_of(items, chunks), axis_names)
        columns.append(column)
        values[column.name] = items.reshape(-1)
    path = name + (".b2nd" if is_single else ".b2z")
    if is_single:
        ((array, dims),) = arrays.values()
        array = array.copy(urlpath=path, mode="w")
        array.schunk.vlmeta["dims"] = dims
    else:
        store = b2.TreeStore(path, mode="w")
        for key, (array, dims) in arrays.items():
            array.schunk.vlmeta["dims"] = dims
            store["/" + key] = array
        store.close()
    seen["nan"] += sum(int(np.isnan(items).sum()) for items in values.values() if items.dtype.kind == "f")
    add_to_duckdb(name, pa.table({c.name: pa.array(values[c.name], c.arrow()) for c in columns}))
    return Table(name, columns, None, math.prod(shape)), path


python = [write_table_of_python(at) for at in range(50)]
rust = [hand_over_table(at) for at in range(50)]
arrays = [write_arrays(at) for at in range(20)]
TABLES, ARRAYS = python + rust, [table for table, _ in arrays]

# The queries. Every ORDER BY ends with all columns of the result, so that rows in equal places are equal.


def q(column, alias):
    return f'{alias}."{column.name}"'


def condition(table, alias):
    column = rng.choice(table.columns)
    c = q(column, alias)
    compare = f"{c} {rng.choice(['=', '<>', '<', '<=', '>', '>='])} {column.literal()}"
    kinds = [f"{c} IS {rng.choice(['', 'NOT '])}NULL"]
    if column.is_int:
        kinds += [compare, f"{c} BETWEEN {rng.randint(0, 20)} AND {rng.randint(20, 4000)}", f"{c} IN (1, 7, 13, 25)",
                  f"{c} % {rng.randint(2, 9)} = {rng.randrange(2)}"]
    elif column.is_float:
        # NaN is equal to NaN and greater than all numbers in both.
        kinds += [compare, compare, f"isnan({c})", f"{c} > 1000000", f"NOT ({compare})"]
    elif column.unit:
        kinds += [compare, compare, f"{c} BETWEEN TIMESTAMP '2023-11-20' AND {time_literal()}",
                  f"date_part('month', {c}) = {rng.choice([1, 2, 11, 12])}",
                  f"date_trunc('month', {c}) = TIMESTAMP '2023-12-01'"]
    elif column.is_text:
        kinds += [compare, compare, f"{c} LIKE '%{rng.randrange(10)}'", f"{c} LIKE 'n° 1%'", f"{c} IN ('a', 'ß', 'n° 5')",
                  f"length({c}) > {rng.randrange(5)}"]
    else:
        kinds += [c, f"NOT {c}", f"{c} IS NOT TRUE"]
    return rng.choice(kinds)


def where(table, alias, chance=0.8):
    if rng.random() > chance:
        return ""
    text = condition(table, alias)
    for _ in range(rng.choice([0, 0, 1, 2])):
        text = f"({text}) {rng.choice(['AND', 'OR'])} {rng.choice(['', 'NOT '])}({condition(table, alias)})"
    return f"WHERE {text}"


def expression(table, alias):
    """A value of each row."""
    column = rng.choice(table.columns)
    c = q(column, alias)
    kinds = [c, c, c, f"CASE WHEN {condition(table, alias)} THEN 1 WHEN {condition(table, alias)} THEN 2 END"]
    if column.is_int:
        # `/` of integers divides floats in DuckDB, and integers in DataFusion.
        kinds += [f"CAST({c} % 10 AS BIGINT)", f"CAST({c} AS DOUBLE) / 4", f"COALESCE(CAST({c} % 7 AS BIGINT), -1)"]
    elif column.is_float:
        kinds += [f"COALESCE({c}, 0.5)", f"CASE WHEN {c} < 0 THEN -{c} ELSE {c} END"]
    elif column.unit:
        kinds += [f"date_trunc('{rng.choice(['month', 'day', 'hour'])}', {c})", f"CAST(date_part('{rng.choice(['day', 'hour', 'year'])}', {c}) AS BIGINT)"]
    elif column.is_text:
        kinds += [f"COALESCE({c}, 'none')", f"{c} || '!'", f"length({c})"]
    return rng.choice(kinds)


def group_key(table, alias):
    column = rng.choice(table.columns)
    c = q(column, alias)
    if column.name == "id" or column.is_int and rng.random() < 0.7:
        return f"CAST({c} % 5 AS BIGINT)"
    if column.unit:
        return f"date_trunc('{rng.choice(['month', 'month', 'day'])}', {c})"
    return c


def aggregate(table, alias):
    column = rng.choice(table.columns)
    c = q(column, alias)
    kinds = [f"count({c})", f"count(DISTINCT {c})", "count(*)"]
    # Sums of 64-bit integers overflow in DataFusion, and have 128 bits in DuckDB.
    if column.is_int:
        small = f"CAST({c} % 1000 AS BIGINT)"
        kinds += [f"CAST(sum({small}) AS BIGINT)", f"avg({small})", f"min({c})", f"max({c})"]
    elif column.is_float:
        # Infinities and NaN in a sum are left out: DuckDB fails on some of them. `approx` names the only inexact columns:
        # sums of floats depend on the order of the items.
        finite = f"CASE WHEN abs({c}) < 1000000 THEN CAST({c} AS DOUBLE) END"
        kinds += [f"sum({finite}) AS approx", f"avg({finite}) AS approx", f"min({finite})", f"max({finite})"]
    elif column.unit or column.is_text:
        kinds += [f"min({c})", f"max({c})"]
    else:
        kinds += [f"bool_and({c})", f"CAST(sum(CASE WHEN {c} THEN 1 ELSE 0 END) AS BIGINT)"]
    return rng.choice(kinds)


def select(expressions, rest, ordered=None, limit=False):
    """A query with these columns, in an order if `ordered` or by chance."""
    approx = [" AS approx" in text for text in expressions]
    columns = [text.removesuffix(" AS approx") for text in expressions]
    sql = "SELECT " + ", ".join(f"{text} AS c{at}" for at, text in enumerate(columns)) + " " + rest
    if ordered is None:
        ordered = rng.random() < 0.5
    keys = [at for at in range(len(columns)) if not approx[at]]
    if limit and any(approx):
        limit = False
    if ordered or limit:
        rng.shuffle(keys)
        # The default place of NULL differs.
        sql += " ORDER BY " + ", ".join(f"{at + 1} {rng.choice(['', 'DESC '])}NULLS {rng.choice(['LAST', 'FIRST'])}" for at in keys)
        if limit:
            sql += f" LIMIT {rng.randrange(60)}" + (f" OFFSET {rng.randrange(8)}" if rng.random() < 0.5 else "")
    return sql, bool(ordered or limit) and not any(approx), approx


def any_table():
    return rng.choice(ARRAYS) if rng.random() < 0.25 else some_table(TABLES)


def some_table(tables):
    """A table, rarely one with few rows, most of whose results are empty."""
    table = rng.choice(tables)
    return table if table.count >= 10 or rng.random() < 0.2 else some_table(tables)


def rows_query():
    t = any_table()
    columns = [expression(t, "t") for _ in range(rng.randint(1, 4))]
    return select(columns, f"FROM {t.name} t {where(t, 't')}", limit=rng.random() < 0.4)


def all_query():
    t = any_table()
    return select([q(column, "t") for column in t.columns], f"FROM {t.name} t {where(t, 't')}")


def group_query():
    t = any_table()
    keys = [group_key(t, "t") for _ in range(rng.choice([1, 1, 2]))]
    values = [aggregate(t, "t") for _ in range(rng.randint(1, 4))]
    having = f"HAVING count(*) > {rng.randrange(4)}" if rng.random() < 0.3 else ""
    rest = f"FROM {t.name} t {where(t, 't', 0.5)} GROUP BY {', '.join(str(at + 1) for at in range(len(keys)))} {having}"
    return select(keys + values, rest)


def total_query():
    t = any_table()
    return select([aggregate(t, "t") for _ in range(rng.randint(2, 5))], f"FROM {t.name} t {where(t, 't')}", ordered=False)


def join_query():
    t, o = rng.choice([(some_table(python), some_table(rust)), (some_table(TABLES), rng.choice(ARRAYS)),
                       (some_table(TABLES), some_table(TABLES))])
    join = rng.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
    if o.unique:
        right, on = o.name, f't.id = o.id * {rng.randint(1, 3)}'
    else:
        # One row for each coordinate.
        axis = rng.choice(o.some(lambda c: c.is_int) or [None])
        if axis is None:
            return group_query()
        right, on = f'(SELECT DISTINCT "{axis.name}" FROM {o.name})', f't.id = o."{axis.name}"'
        o = Table(o.name, [axis], None, o.count)
    columns = [expression(t, "t"), expression(o, "o"), expression(t, "t")]
    return select(columns, f"FROM {t.name} t {join} {right} o ON {on} {where(t, 't', 0.6)}", limit=rng.random() < 0.3)


def window_query():
    t = any_table()
    part, item = rng.choice(t.columns), q(rng.choice(t.columns), "t")
    partition = f"PARTITION BY {q(part, 't')}" if rng.random() < 0.7 else ""
    if t.unique:
        over = f"OVER ({partition} ORDER BY t.id)"
        frame = f"OVER ({partition} ORDER BY t.id ROWS BETWEEN {rng.randrange(4)} PRECEDING AND {rng.randrange(3)} FOLLOWING)"
        calls = [f"row_number() {over}", f"lag({item}) {over}", f"lead({item}, 2) {over}", f"CAST(sum(CAST(t.id AS BIGINT)) {frame} AS BIGINT)",
                 f"count({item}) {frame}", f"first_value({item}) {over}"]
    else:
        # Rows of equal coordinates have no order: functions that do not depend on it.
        over = f"OVER ({partition} ORDER BY {q(rng.choice(t.columns), 't')} {rng.choice(['', 'DESC '])}NULLS LAST)"
        calls = [f"rank() {over}", f"dense_rank() {over}", f"count({item}) {over}"]
    columns = [expression(t, "t")] + rng.sample(calls, 2)
    return select(columns, f"FROM {t.name} t {where(t, 't', 0.5)}", limit=rng.random() < 0.3)


def distinct_query():
    t = any_table()
    sql, ordered, approx = select([group_key(t, "t"), group_key(t, "t")], f"FROM {t.name} t {where(t, 't', 0.5)}", limit=rng.random() < 0.3)
    return sql.replace("SELECT", "SELECT DISTINCT", 1), ordered, approx


def union_query():
    parts = []
    for _ in range(rng.choice([2, 2, 3])):
        t = any_table()
        texts = [q(c, "t") for c in t.some(lambda c: c.is_text)] + ["'none'"]
        numbers = [f"CAST({q(c, 't')} % 100 AS BIGINT)" for c in t.some(lambda c: c.is_int)] + ["CAST(7 AS BIGINT)"]
        parts.append(f"SELECT {rng.choice(texts)} AS s, {rng.choice(numbers)} AS n FROM {t.name} t {where(t, 't')}")
    return select(["s", "n"], f"FROM ({' UNION ALL '.join(parts)}) u", limit=rng.random() < 0.3)


def subquery():
    t, o = some_table(TABLES), some_table(TABLES)
    inner = where(o, "o") or "WHERE TRUE"
    test = rng.choice([
        f"t.id IN (SELECT o.id * 2 FROM {o.name} o {inner})",
        f"t.id NOT IN (SELECT o.id FROM {o.name} o {inner})",
        f"EXISTS (SELECT 1 FROM {o.name} o WHERE o.id = t.id AND ({inner[6:]}))",
        f"NOT EXISTS (SELECT 1 FROM {o.name} o WHERE o.id = t.id AND ({inner[6:]}))",
        f"t.id > (SELECT min(o.id) + 3 FROM {o.name} o {inner})",
        f"t.id <= (SELECT CAST(floor(avg(o.id)) AS BIGINT) FROM {o.name} o WHERE o.id % 2 = 0 AND ({inner[6:]}))",
    ])
    columns = [expression(t, "t"), "t.id"]
    return select(columns, f"FROM {t.name} t WHERE {test}" + rng.choice(["", f" AND {condition(t, 't')}"]), limit=rng.random() < 0.3)


KINDS = [rows_query, rows_query, all_query, group_query, group_query, total_query, join_query, join_query, window_query,
         distinct_query, union_query, subquery, subquery]


def cells(column):
    """Integers, booleans, texts, floats as texts in a list, and times as nanoseconds."""
    type = column.type
    if pa.types.is_timestamp(type):
        scale = 10**9 // UNITS[type.unit]
        return [None if item is None else f"{item * scale} ns" for item in column.cast(pa.int64()).to_pylist()]
    if pa.types.is_floating(type):
        return [None if item is None else [repr(item)] for item in column.to_pylist()]
    if pa.types.is_integer(type) or pa.types.is_boolean(type) or pa.types.is_string(type):
        return column.to_pylist()
    if pa.types.is_dictionary(type):
        return column.cast(pa.string()).to_pylist()
    raise TypeError(f"a result of DuckDB has the type {type}")


with open("results.json", "w") as file:
    for at in range(QUERIES):
        sql, ordered, approx = KINDS[at % len(KINDS)]()
        try:
            found = database.sql(sql).to_arrow_table()
            rows = list(zip(*(cells(column) for column in found.columns)))
        except Exception as error:
            raise RuntimeError(f"DuckDB: {sql}") from error
        print(json.dumps(dict(sql=sql, ordered=ordered, approx=approx, rows=rows)), file=file)
with open("plan.json", "w") as file:
    json.dump(dict(arrays=[path for _, path in arrays], seen=seen), file)
