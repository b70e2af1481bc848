// The page with local files and with addresses.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { FILES, PAGE, choose, facts, launch, open, parseNpy, save, settled, view } from './browser.js';
import { serve } from './server.js';

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

let browser;
let server;
before(async () => {
  browser = await launch();
  server = await serve({ '/files/': FILES, '/': PAGE });
});
after(async () => {
  await browser?.close();
  server?.close();
});

/** Runs a test with a page; at the end, nothing has failed in it, and no other host was asked. */
async function withPage(run, options = {}) {
  const { page, hosts, errors, close } = await open(browser, server.address, options);
  try {
    await run(page);
    assert.deepEqual(errors, []);
    assert.deepEqual([...hosts], [new URL(server.address).host]);
  } finally {
    await close();
  }
}

/** The colour of the item at a row and a column, at the middle of its place in the picture. */
async function colourAt(page, shape, row, col) {
  return page.evaluate(([[rows, cols], row, col]) => {
    const canvas = document.querySelector('#picture');
    const scale = Math.min(canvas.width / cols, canvas.height / rows);
    const x = Math.floor((col + 0.5 - cols / 2) * scale + canvas.width / 2);
    const y = Math.floor((row + 0.5 - rows / 2) * scale + canvas.height / 2);
    return [...canvas.getContext('2d').getImageData(x, y, 1, 1).data];
  }, [shape, row, col]);
}

test('the pixels of a picture have the colours of their values', () => withPage(async (page) => {
  await choose(page, 'picture.b2nd');
  await page.selectOption('#map', 'grey');
  await page.selectOption('#range', '0');
  await settled(page, 'picture');
  const { items } = parseNpy(readFileSync(`${FILES}/picture.npy`));
  const values = new Float32Array(items.buffer.slice(items.byteOffset, items.byteOffset + items.length));
  const finite = values.filter(Number.isFinite);
  const [low, high] = [finite.reduce((a, b) => Math.min(a, b)), finite.reduce((a, b) => Math.max(a, b))];
  let nan = 0;
  for (const row of [20, 40, 75, 110, 119, 120, 150, 230, 270]) {
    for (const col of [20, 77, 160, 199, 210, 239, 240, 333, 480]) {
      const value = values[row * 500 + col];
      const found = await colourAt(page, [300, 500], row, col);
      if (Number.isNaN(value)) {
        nan += 1;
        assert.deepEqual(found, [0xd9, 0x2a, 0x7d, 255], `${row}, ${col}`);
        continue;
      }
      // The lightness of Oklab is the cube root of the intensity.
      const index = Math.min(255, Math.floor((value - low) / (high - low) * 256));
      const linear = (index / 255) ** 3;
      const grey = Math.round(255 * (linear <= 0.0031308 ? 12.92 * linear : 1.055 * linear ** (1 / 2.4) - 0.055));
      assert.deepEqual(found, [grey, grey, grey, 255], `${row}, ${col}`);
    }
  }
  assert.ok(nan >= 4);
}));

test('the value under the pointer is that of NumPy', () => withPage(async (page) => {
  await choose(page, 'volume.b2nd');
  await view(page, 'picture');
  await page.fill('#selection input[type=number]', '7');
  await page.press('#selection input[type=number]', 'Enter');
  await settled(page, 'picture');
  const box = await page.locator('#picture').boundingBox();
  await page.mouse.move(box.x + box.width / 2 + 3, box.y + box.height / 2 + 3);
  await page.waitForFunction(() => document.querySelector('#value').value.startsWith('[7, '));
  const [, text, value] = /^\[(.*)\] {2}(.*)$/.exec(await page.inputValue('#value').catch(() => page.textContent('#value')));
  const [a, b, c] = text.split(', ').map(Number);
  assert.equal(Number(value), (a * 4800 + b * 80 + c) % 10007);
  assert.deepEqual([b, c], [30, 40]);
}));

test('what is visible is saved', () => withPage(async (page) => {
  await choose(page, 'volume.b2nd');
  await view(page, 'picture');
  const expected = parseNpy(readFileSync(`${FILES}/volume.npy`)).items;
  const plane = expected.subarray(9 * 4800 * 4, 10 * 4800 * 4);
  const found = parseNpy(await save(page, 'npy'));
  assert.deepEqual(found.shape, [60, 80]);
  assert.ok(found.items.equals(plane));
  const lines = (await save(page, 'csv')).toString().trim().split('\n');
  assert.equal(lines.length, 60);
  assert.equal(lines[7], Array.from({ length: 80 }, (_, k) => plane.readInt32LE(4 * (7 * 80 + k))).join(','));
  const png = await save(page, 'png');
  // A pixel for each item.
  assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], [80, 60]);
  await page.click('#zoom-in');
  await settled(page, 'picture');
  const part = parseNpy(await save(page, 'npy'));
  assert.ok(part.shape[0] < 60 && part.shape[1] <= 80, part.shape);
}));

test('facts have the words of the command', () => withPage(async (page) => {
  await choose(page, 'volume.b2nd');
  const { kind, shape, chunks, blocks, dtype, codec, clevel, filters, nchunks } = await facts(page);
  assert.deepEqual({ kind, shape, chunks, blocks, dtype, codec, clevel, filters, nchunks }, {
    kind: 'ndarray', shape: '20, 60, 80', chunks: '7, 25, 33', blocks: '3, 10, 11', dtype: '<i4', codec: 'zstd', clevel: '5',
    filters: 'shuffle', nchunks: '27',
  });
}));

test('metadata is text, also if it looks like a tag', () => withPage(async (page) => {
  await choose(page, 'schunk.b2frame');
  await page.waitForSelector('#layers details');
  const texts = await page.locator('#layers pre').allTextContents();
  assert.deepEqual(texts, ["{'station': 7, 'names': ['a', 'b']}", "'<b>not bold</b>'"]);
  assert.equal(await page.locator('#layers b').count(), 0);
}));

test('a plot shows the extremes of all items', () => withPage(async (page) => {
  await choose(page, 'wave.b2nd');
  await settled(page, 'plot');
  const text = await page.textContent('#statistics');
  assert.match(text, /count2000000/);
  assert.match(text, /max5000 at \[1234567\]/);
}));

test('a table scrolls to any row', () => withPage(async (page) => {
  await choose(page, 'table.b2nd');
  await view(page, 'table');
  assert.deepEqual(await page.locator('#table thead th').allTextContents(), ['index', 'id', 'speed', 'place', 'ok', 'name']);
  await page.fill('#row', '765432');
  await page.press('#row', 'Enter');
  await page.waitForFunction(() => document.querySelector('#table tbody th').textContent === '765432');
  const cells = await page.locator('#table tbody tr').first().locator('td').allTextContents();
  const speed = Number(Math.sin(765.432).toFixed(4));
  assert.deepEqual(cells, ['765432', String(speed), '[0.0, 0.5]', 'True', "b'n432'"]);
  await page.focus('#scroller');
  await page.keyboard.press('End');
  await page.waitForFunction(() => document.querySelector('#table tbody tr:last-child th').textContent === '999999');
}));

/** The names of the items of the tree that are not in a closed group. */
async function labels(page) {
  return page.locator('#tree [role=treeitem]:visible > .row').allTextContents();
}

test('the entries of stores are listed and opened', () => withPage(async (page) => {
  await choose(page, 'store.b2z');
  assert.deepEqual(await labels(page), ['first', 'place', 'speed', 'second']);
  await page.click('#tree [data-key="/first/speed"]');
  await page.waitForFunction(() => document.querySelector('#facts').textContent.includes('20, 30'));
  await view(page, 'table');
  assert.equal(await page.locator('#table tbody tr').nth(3).locator('td').nth(2).textContent(), '92.0');
  await choose(page, 'embed.b2e');
  await page.click('#tree [data-key="/a"]');
  await page.waitForFunction(() => document.querySelector('#facts').textContent.includes('10, 10'));
  await view(page, 'table');
  assert.equal(await page.locator('#table tbody tr').nth(3).locator('td').nth(2).textContent(), '32');
}));

test('the rows of a table are shown', () => withPage(async (page) => {
  await choose(page, 'table.b2z');
  await settled(page, 'table');
  assert.equal(await page.getAttribute('#tab-picture', 'title'), 'A picture shows an array; this is a table.');
  assert.deepEqual(await page.locator('#table thead th').allTextContents(), ['index', 'id', 'speed', 'name']);
  await page.fill('#row', '4321');
  await page.press('#row', 'Enter');
  await page.waitForFunction(() => document.querySelector('#table tbody th').textContent === '4321');
  assert.deepEqual(await page.locator('#table tbody tr').first().locator('td').allTextContents(), ['4321', '2160.5', "'n4321'"]);
}));

test('the tree has the keys of trees', () => withPage(async (page) => {
  await choose(page, 'store.b2z');
  await page.waitForSelector('#tree [aria-selected=true]');
  const active = () => page.evaluate(() => document.activeElement.dataset.name);
  await page.focus('#tree [tabindex="0"]');
  const after = async (key) => { await page.keyboard.press(key); return active(); };
  assert.equal(await active(), 'place');
  assert.equal(await after('ArrowDown'), 'speed');
  assert.equal(await after('ArrowLeft'), 'first');
  await page.keyboard.press('ArrowLeft');
  assert.deepEqual(await labels(page), ['first', 'second']);
  assert.equal(await page.getAttribute('#tree [data-name=first]', 'aria-expanded'), 'false');
  assert.equal(await after('ArrowDown'), 'second');
  assert.equal(await after('Home'), 'first');
  assert.equal(await after('ArrowRight'), 'first');
  assert.equal(await after('ArrowRight'), 'place');
  assert.equal(await after('End'), 'second');
  assert.equal(await after('s'), 'speed');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('#facts').textContent.includes('20, 30'));
  assert.equal(await page.getAttribute('#tree [data-name=speed]', 'aria-selected'), 'true');
}));

test('internal members are hidden at first', () => withPage(async (page) => {
  await choose(page, 'table.b2z');
  await settled(page, 'table');
  assert.deepEqual(await labels(page), ['the table']);
  await page.check('#internal');
  const shown = await labels(page);
  for (const name of ['_cols', '_meta', '_valid_rows', 'speed']) assert.ok(shown.includes(name), `${name} in ${shown}`);
  await page.click('#tree [data-key="/_cols/speed"]');
  await page.waitForFunction(() => document.querySelector('#facts').textContent.includes('ndarray'));
  await page.click('#tree [data-key="/"]');
  await page.waitForFunction(() => document.querySelector('#facts').textContent.includes('ctable'));
  await page.uncheck('#internal');
  assert.deepEqual(await labels(page), ['the table']);
}));

/** The statistics that are shown. */
async function statistics(page) {
  return page.evaluate(() => Object.fromEntries([...document.querySelectorAll('#statistics dt')].map((term) =>
    [term.textContent, term.nextElementSibling.textContent])));
}

test('a column of a table has statistics', () => withPage(async (page) => {
  await choose(page, 'kinds.b2z');
  await page.waitForSelector('#summary[data-done=true]');
  const column = async (name) => {
    await page.selectOption('#column-choice', name);
    await page.waitForSelector('#summary[data-done=true]');
    return statistics(page);
  };
  assert.ok(Number((await facts(page)).ratio) > 2);
  // 3,000 rows: those that 7 divides are null, and those that 11 divides NaN.
  const speed = await column('speed');
  assert.equal(speed.null, '429');
  assert.equal(speed.NaN, '234');
  assert.equal(speed.count, String(3000 - 429));
  assert.equal(speed.rows, 'all 3000');
  assert.equal(speed.max, '2999.5 at row 2999');
  assert.equal(speed.min, '1.5 at row 1');
  assert.match((await column('when')).max, /^2020-01-01T00:49:59\.000000 at row 2999$/);
  assert.match((await column('big')).max, /^9007199254743992 at row 2999$/);
  assert.match((await column('name')).type, /^utf8: statistics are computed of numbers/);
  // The button shows the row.
  await column('speed');
  await page.click('#statistics dd button >> nth=1');
  await page.waitForSelector('#table td.marked');
  assert.equal(await page.locator('#table tr:has(td.marked) th').textContent(), '2999');
  // So does a click on the title of a column.
  await page.click('#table th button:has-text("big")');
  assert.equal(await page.inputValue('#column-choice'), 'big');
}));

test('rows of a table are saved', () => withPage(async (page) => {
  await choose(page, 'kinds.b2z');
  await page.waitForSelector('#summary[data-done=true]');
  const lines = async () => (await save(page, 'csv')).toString().split('\n');
  const visible = await lines();
  assert.equal(visible[0], 'id,speed,when,big,name,flag');
  assert.equal(visible[1], '0,,2020-01-01T00:00:00.000000,9007199254740993,"a, ""0""",True');
  assert.equal(visible[2], '1,1.5,2020-01-01T00:00:01.000000,9007199254740994,"a, ""1""",False');
  assert.ok(visible.length > 10 && visible.length < 100, visible.length);
  await page.selectOption('#scope', 'slice');
  await page.fill('#slice', '2990:');
  const last = await lines();
  assert.equal(last.length, 12);
  assert.match(last[10], /^2999,2999\.5,/);
  await page.selectOption('#scope', 'all');
  assert.equal((await lines()).length, 3002);
  await page.selectOption('#scope', 'slice');
  await page.fill('#slice', 'x');
  await page.click('[data-format=csv]');
  await page.waitForFunction(() => document.querySelector('#save-text').value.includes('Expected an index or a range'));
}));

test('objects, batches and lists are shown as text', () => withPage(async (page) => {
  const first = async (name, count) => {
    await choose(page, name);
    await settled(page, 'table');
    assert.equal((await facts(page)).nrows, String(count));
    return page.locator('#table tbody td').first().textContent();
  };
  assert.equal(await first('objects.b2frame', 3), "{'a': 1}");
  assert.equal(await first('batches.b2frame', 500), '0');
  assert.equal(await first('lists.b2frame', 40), '[0, 1]');
  assert.equal(await page.locator('#table tbody td').nth(1).textContent(), 'None');
  await choose(page, 'tensor.b2frame');
  assert.equal((await facts(page)).kind, 'tensor');
  assert.equal((await facts(page)).shape, '3, 4');
  await view(page, 'table');
  assert.equal(await page.locator('#table tbody td').nth(5).textContent(), '2.5');
}));

test('an index is reached', () => withPage(async (page) => {
  await choose(page, 'volume.b2nd');
  await view(page, 'picture');
  const value = (a, b, c) => `[${a}, ${b}, ${c}]  ${(a * 4800 + b * 80 + c) % 10007}`;
  const goTo = async (text, expected) => {
    await page.fill('#index', text);
    await page.press('#index', 'Enter');
    await page.waitForFunction((expected) => document.querySelector('#index-value').value === expected, expected);
    assert.equal(await page.inputValue('#index'), text);
    assert.equal(await page.getAttribute('#index', 'aria-invalid'), String(expected.startsWith('Expected')));
  };
  await goTo('3, 20, 70', value(3, 20, 70));
  await goTo('[19 59 79]', value(19, 59, 79));
  await goTo('-1, -2, 5', value(19, 58, 5));
  // The pointer has its own text.
  await page.hover('#picture');
  await page.waitForFunction(() => document.querySelector('#value').value.startsWith('[19, '));
  assert.equal(await page.inputValue('#index-value').catch(() => page.textContent('#index-value')), value(19, 58, 5));
  await goTo('-21, 0, 0', 'Expected 3 indices from 0, 0, 0 to 19, 59, 79');
  await goTo('1, 2', 'Expected 3 indices from 0, 0, 0 to 19, 59, 79');
  await view(page, 'plot');
  await goTo('3, 20, 70', value(3, 20, 70));
  await view(page, 'table');
  await goTo('4, 50, 11', value(4, 50, 11));
  await page.waitForSelector('#table td.marked');
  assert.equal(await page.textContent('#table td.marked'), value(4, 50, 11).split('  ')[1]);
}));

test('a slice is saved', () => withPage(async (page) => {
  await choose(page, 'volume.b2nd');
  await view(page, 'picture');
  const all = parseNpy(readFileSync(`${FILES}/volume.npy`)).items;
  await page.selectOption('#scope', 'slice');
  await page.fill('#slice', '2:4, -1, 3:5');
  const found = parseNpy(await save(page, 'npy'));
  assert.deepEqual(found.shape, [2, 2]);
  const items = [[2, 3], [2, 4], [3, 3], [3, 4]].map(([a, c]) => all.readInt32LE(4 * (a * 4800 + 59 * 80 + c)));
  assert.deepEqual([0, 4, 8, 12].map((at) => found.items.readInt32LE(at)), items);
}));

test('a slice is described before it is saved, and refused if it is none', () => withPage(async (page) => {
  await choose(page, 'volume.b2nd');
  await view(page, 'picture');
  await page.selectOption('#scope', 'slice');
  const says = async (text, expected) => {
    await page.fill('#slice', text);
    assert.match(await page.textContent('#save-text'), expected, text);
  };
  let saved = 0;
  page.on('download', () => { saved += 1; });
  for (const [text, expected] of [
    ['2-4', /^Expected an index or a range such as 0:10 for axis 0, found 2-4$/],
    ['1:2:3', /found 1:2:3$/],
    ['2:4,', /found nothing$/],
    ['4:2', /^The range 4:2 of axis 0 has no items\.$/],
    [':, 7:7', /^The range 7:7 of axis 1 has no items\.$/],
    ['0:21', /^The range 0:21 of axis 0 is not within 0:20\.$/],
    ['20', /^The index 20 of axis 0 is not from 0 to 19\.$/],
    ['1, 2, 3, 4', /4 parts, but there are 3 axes/],
  ]) {
    await says(text, expected);
    assert.equal(await page.getAttribute('#slice', 'aria-invalid'), 'true');
    await page.press('#slice', 'Enter');
    assert.match(await page.textContent('#save-text'), expected, text);
  }
  await says('', /^An example: 0:10, :, : \(the end of a range is not included\)$/);
  await page.click('[data-format=npy]');
  assert.match(await page.textContent('#save-text'), /^Expected an index or a range/);
  await says('2:4, -1, -5:', /^2 x 1 x 5 items, 40 bytes \(the end of a range is not included\)$/);
  assert.equal(await page.getAttribute('#slice', 'aria-invalid'), 'false');
  const [download] = await Promise.all([page.waitForEvent('download'), page.press('#slice', 'Enter')]);
  assert.deepEqual(parseNpy(readFileSync(await download.path())).shape, [2, 5]);
  assert.match(await page.textContent('#save-text'), /^Saved volume_2-4_59_75-80\.npy, 168 bytes\.$/);
  assert.equal(saved, 1);
}));

test('statistics of a sample are marked, and those of all items are computed', () => withPage(async (page) => {
  await choose(page, 'picture.b2nd');
  await settled(page, 'picture');
  await page.click('#zoom-out');
  await page.click('#zoom-out');
  await settled(page, 'picture');
  const sampled = await statistics(page);
  assert.deepEqual(Object.keys(sampled).filter((name) => name !== 'NaN'),
    ['count', 'min', 'max', 'mean', 'median', 'std'].map((name) => `${name} (sample)`));
  await page.click('#scan');
  await page.waitForFunction(() => document.querySelector('#statistics dt').textContent === 'count');
  const { items } = parseNpy(readFileSync(`${FILES}/picture.npy`));
  const values = new Float32Array(items.buffer.slice(items.byteOffset, items.byteOffset + items.length));
  const finite = values.filter(Number.isFinite).sort();
  const all = await statistics(page);
  const place = (value) => { const at = values.indexOf(value); return `at [${Math.floor(at / 500)}, ${at % 500}]`; };
  const text = (value) => String(Number(value.toPrecision(6)));
  assert.equal(all.count, String(values.length));
  assert.equal(all.min, `${text(finite[0])} ${place(finite[0])}`);
  assert.equal(all.max, `${text(finite.at(-1))} ${place(finite.at(-1))}`);
  // There are more numbers than are kept for the median.
  assert.match(all.median, /^about /);
  assert.equal(await page.isVisible('#scan'), false);
  // New colours do not bring the sample back.
  await page.selectOption('#map', 'grey');
  await settled(page, 'picture');
  assert.equal((await statistics(page)).max, all.max);
  await page.click('#zoom-in');
  await settled(page, 'picture');
  assert.equal((await statistics(page)).max, undefined);
}, { viewport: { width: 360, height: 740 } }));

test('all members of a store are checked', () => withPage(async (page) => {
  const report = async (name) => {
    await choose(page, name);
    await page.click('#tab-check');
    await page.click('#check-all');
    await page.waitForSelector('#report[data-done=true]');
    return page.textContent('#report');
  };
  assert.match(await report('store.b2z'), /^All blocks decode\. They agree with the checksums\./);
  const members = await page.locator('#report table.members tbody tr td:first-child').allTextContents();
  for (const name of ['embed.b2e', 'first/place.b2nd', 'first/speed.b2nd', 'second.b2nd']) assert.ok(members.includes(name), name);
  assert.match(await report('embed.b2e'), /embedded store\. .*\/b\/c/);
  assert.match(await report('damaged.b2z'), /The file is damaged/);
  assert.match(await page.locator('#report table.findings tbody tr').first().textContent(), /first\/speed\.b2nd.*error/);
  await page.click('#report table.findings button');
  await page.waitForSelector('#panel-chunks:not([hidden])');
  assert.equal(await page.getAttribute('#tree [data-name=speed]', 'aria-selected'), 'true');
}));

test('the greatest value of a column is found', () => withPage(async (page) => {
  await choose(page, 'table.b2nd');
  await page.selectOption('#selection select', { label: 'speed' });
  await settled(page, 'plot');
  assert.match(await page.textContent('#statistics'), /max1 at/);
}));

test('the map shows the chunks', () => withPage(async (page) => {
  await choose(page, 'volume.b2nd');
  await view(page, 'chunks');
  await page.focus('#chunks');
  for (let k = 0; k < 5; k += 1) await page.keyboard.press('ArrowRight');
  await page.waitForFunction(() => document.querySelector('#chunk-facts').textContent.startsWith('chunk4'));
  assert.match(await page.textContent('#chunk-facts'), /items0:7, 25:50, 33:66/);
}));

test('a damaged chunk is found', () => withPage(async (page) => {
  await choose(page, 'damaged.b2nd');
  await page.click('#tab-check');
  await page.click('#check-all');
  await page.waitForSelector('#report[data-done=true]');
  assert.match(await page.textContent('#report'), /The file is damaged/);
  // The header of the chunk is good, so nothing speaks against the index.
  assert.deepEqual(await page.locator('#report table.findings tbody td:nth-child(4)').allTextContents(), ['chunk.csize']);
  const chunk = await page.textContent('#report button');
  await page.click('#report button');
  await page.waitForSelector('#panel-chunks:not([hidden])');
  await page.waitForFunction((chunk) => document.querySelector('#damaged').textContent === `Striped: cannot be read, ${chunk}`, chunk);
  assert.match(await page.textContent('#value'), /; it cannot be read$/);
}));

/** Whether a canvas has pixels in the colour of the stripes. */
const hasStripes = (page, canvas) => page.evaluate((canvas) => {
  const element = document.querySelector(canvas);
  const { data } = element.getContext('2d').getImageData(0, 0, element.width, element.height);
  for (let at = 0; at < data.length; at += 4) if (data[at] === 0xa3 && data[at + 1] === 0x21 && data[at + 2] === 0x3f) return true;
  return false;
}, canvas);

test('what cannot be read of a plot is striped', () => withPage(async (page) => {
  await choose(page, 'wave.b2nd');
  await settled(page, 'plot');
  assert.ok(!await hasStripes(page, '#plot'));
  const buffer = readFileSync(`${FILES}/wave.b2nd`);
  // Some streams of a block are stored uncompressed, so that a change of few bytes may not be found.
  const start = Math.floor(buffer.length / 2);
  for (let at = start; at < start + 40000; at += 1) buffer[at] ^= 0x5a;
  await page.setInputFiles('#file', { name: 'torn.b2nd', mimeType: 'application/octet-stream', buffer });
  await page.waitForFunction(() => document.querySelector('#file-name').textContent.startsWith('torn.b2nd ·'));
  await settled(page, 'plot');
  assert.ok(await hasStripes(page, '#plot'));
}));

test('what cannot be read of a picture is striped, and its chunk is named', () => withPage(async (page) => {
  const buffer = readFileSync(`${FILES}/picture.b2nd`);
  // In a stream of a block.
  const start = Math.floor(buffer.length / 5);
  for (let at = start; at < start + 400; at += 1) buffer[at] ^= 0x5a;
  await page.setInputFiles('#file', { name: 'torn.b2nd', mimeType: 'application/octet-stream', buffer });
  await page.waitForFunction(() => document.querySelector('#file-name').textContent.startsWith('torn.b2nd ·'));
  await settled(page, 'picture');
  assert.match(await page.textContent('#partial-text'), /^1 block cannot be read, in chunk \d+: ./);
  await page.waitForSelector('#unreadable:not([hidden])');
  assert.ok(Object.keys(await statistics(page)).includes('count (readable)'));
  assert.ok(await hasStripes(page, '#picture'));
  const chunk = await page.textContent('#partial-text button');
  await page.click('#partial-text button');
  await page.waitForSelector('#panel-chunks:not([hidden])');
  await page.waitForFunction((chunk) => document.querySelector('#damaged').textContent.endsWith(chunk), chunk);
}));

test('a check states what it does not show', () => withPage(async (page) => {
  await choose(page, 'volume.b2nd');
  await page.click('#tab-check');
  const heading = async (button) => {
    await page.click(button);
    await page.waitForSelector('#report[data-done=true]');
    return page.textContent('#report .verdict');
  };
  assert.equal(await heading('#check-structure'), 'The structure is sound; the data was not checked');
  assert.equal(await heading('#check-all'), 'All blocks decode. The file has no checksums: changed values cannot be detected.');
}));

test('a tap shows a value, and at Fit one finger moves the page', () => withPage(async (page) => {
  await choose(page, 'volume.b2nd');
  await view(page, 'picture');
  await page.tap('#picture');
  await page.waitForFunction(() => /^\[9, (29|30), (39|40)\] {2}\d/.test(document.querySelector('#value').value));
  const action = () => page.evaluate(() => getComputedStyle(document.querySelector('#picture')).touchAction);
  assert.equal(await action(), 'pan-x pan-y');
  await page.click('#zoom-in');
  await page.click('#zoom-in');
  assert.equal(await action(), 'none');
  // Above the views: what the file is.
  assert.match(await page.textContent('#brief'), /^20 x 60 x 80 items, <i4, 375\.0 KiB stored in .* \(ratio [\d.]+\)$/);
  await choose(page, 'store.b2z');
  const [tree, tabs] = await Promise.all(['#tree', '#tabs'].map(async (each) => (await page.locator(each).boundingBox()).y));
  assert.ok(tree < tabs);
}, { viewport: { width: 390, height: 800 }, hasTouch: true }));

test('files that cannot be opened have a message', () => withPage(async (page) => {
  const fails = async (name, text) => {
    await page.setInputFiles('#file', `${FILES}/${name}`);
    await page.waitForFunction((name) => document.querySelector('#message').textContent.includes(name), name);
    assert.match(await page.textContent('#message'), text);
  };
  await fails('notes.txt', /expected a chunk, a frame/);
  await page.waitForSelector('#empty:not([hidden])');
  await fails('cut.b2nd', /truncated/);
  await page.waitForSelector('#report[data-done=true]');
  assert.match(await page.textContent('#report'), /The file is damaged/);
  // The page still works.
  await choose(page, 'volume.b2nd');
  await view(page, 'picture');
}));

test('an address is read by ranges, and only the parts that are shown', () => withPage(async (page) => {
  server.log.length = 0;
  await page.goto(`${server.address}/?url=/files/wave.b2nd`);
  await page.waitForFunction(() => document.querySelector('#file-name').textContent.startsWith('wave.b2nd ·'));
  await view(page, 'table');
  const requests = server.log.filter(({ path }) => path === '/files/wave.b2nd');
  assert.ok(requests.every(({ range }) => range), 'every request has a range');
  await page.fill('#row', '1234560');
  await page.press('#row', 'Enter');
  await page.waitForFunction(() => document.querySelector('#table tbody th').textContent === '1234560');
  assert.match(await page.textContent('#table tbody'), /5000\.0/);
}));

test('problems of addresses have messages', async () => {
  const other = await serve({ '/': FILES });
  const noRanges = await serve({ '/': FILES }, { ranges: false, cors: true });
  const good = await serve({ '/': FILES }, { cors: true });
  const { page, close } = await open(browser, server.address);
  try {
    const fails = async (url, text) => {
      await page.goto(`${server.address}/?url=${encodeURIComponent(url)}`);
      await page.waitForSelector('#message:not([hidden])');
      assert.match(await page.textContent('#message p'), text);
    };
    await fails('/files/nothing.b2nd', /no file at .* \(status 404\)/);
    await fails(`${other.address}/volume.b2nd`, /no CORS headers/);
    await fails(`${noRanges.address}/volume.b2nd`, /ignores range requests/);
    await fails('http://127.0.0.1:9/a.b2nd', /No answer from the server/);
    await fails('file:///etc/passwd', /http or https/);
    await page.goto(`${server.address}/?url=${encodeURIComponent(`${good.address}/volume.b2nd`)}`);
    await page.waitForFunction(() => document.querySelector('#file-name').textContent.startsWith('volume.b2nd ·'));
  } finally {
    await close();
    [other, noRanges, good].forEach((each) => each.close());
  }
});

test('a link restores the view', () => withPage(async (page) => {
  await page.goto(`${server.address}/?url=/files/volume.b2nd`);
  await page.waitForFunction(() => document.querySelector('#file-name').textContent.startsWith('volume.b2nd ·'));
  await view(page, 'picture');
  await page.selectOption('#map', 'ember');
  await page.click('#zoom-in');
  await page.fill('#selection input[type=number]', '3');
  await page.press('#selection input[type=number]', 'Enter');
  await settled(page, 'picture');
  await page.waitForFunction(() => location.hash.includes('map=ember') && location.hash.includes('at=3,'));
  const picture = () => page.evaluate(() => document.querySelector('#picture').toDataURL());
  const before = await picture();
  const address = page.url();
  await page.goto('about:blank');
  await page.goto(address);
  await settled(page, 'picture');
  await page.waitForTimeout(100);
  assert.equal(await page.inputValue('#map'), 'ember');
  assert.equal(await picture(), before);
}));

test('a hash of another file is ignored', () => withPage(async (page) => {
  await page.goto(`${server.address}/?url=/files/wave.b2nd#view=picture&axes=4,5&at=1,2,3&field=9&scale=-1,x`);
  await settled(page, 'plot');
}));

test('everything can be used with the keyboard', () => withPage(async (page) => {
  await choose(page, 'volume.b2nd');
  await settled(page, 'picture');
  // The button that opened the file is hidden.
  assert.equal(await page.evaluate(() => document.activeElement.id), 'tab-picture');
  await page.focus('#tab-picture');
  await page.keyboard.press('ArrowRight');
  await settled(page, 'plot');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'tab-plot');
  await page.focus('#plot');
  await page.keyboard.press('+');
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction(() => document.querySelector('#value').value.startsWith('['));
  await page.click('#tab-picture');
  await page.focus('#picture');
  await page.keyboard.press('ArrowDown');
  await page.waitForFunction(() => document.querySelector('#value').value.startsWith('[9, 30, 40]'));
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction(() => document.querySelector('#value').value.startsWith('[9, 30, 41]'));
}));

for (const colorScheme of ['light', 'dark']) {
  test(`axe finds no fault in any view (${colorScheme})`, async () => {
    // The policy of the page allows no script of another source: axe is injected by the browser.
    const context = { colorScheme, bypassCSP: true };
    const { page, close } = await open(browser, server.address, context);
    const check = async (what) => {
      await page.addScriptTag({ path: AXE });
      const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
      const texts = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' ')}`);
      assert.deepEqual(texts, [], what);
    };
    try {
      await check('the empty page');
      await choose(page, 'volume.b2nd');
      for (const name of ['picture', 'plot', 'table', 'chunks']) {
        await view(page, name);
        await check(name);
      }
      await choose(page, 'kinds.b2z');
      await page.waitForSelector('#summary[data-done=true]');
      await check('a table');
      await page.check('#internal');
      await check('the internal members of a table');
      await choose(page, 'damaged.b2z');
      await page.click('#tab-check');
      await page.click('#check-all');
      await page.waitForSelector('#report[data-done=true]');
      await check('the check of a store');
      await page.click('#open-url');
      await check('the dialog of addresses');
    } finally {
      await close();
    }
  });
}

test('nothing is wider than a phone', () => withPage(async (page) => {
  await choose(page, 'volume.b2nd');
  for (const name of ['picture', 'plot', 'table', 'chunks', 'check']) {
    await page.click(`#tab-${name}`);
    const [width, view] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(width <= view, `${name}: ${width} in ${view}`);
  }
  await choose(page, 'kinds.b2z');
  await page.waitForSelector('#summary[data-done=true]');
  const [width, view] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(width <= view, `a table: ${width} in ${view}`);
}, { viewport: { width: 360, height: 740 } }));
