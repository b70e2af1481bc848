// What ends work: a panic of the module, cancel; and a browser without SIMD.

import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { FILES, PAGE, choose, launch, open, parseNpy, save, settled, view } from './browser.js';
import { serve } from './server.js';

let browser;
before(async () => { browser = await launch(); });
after(async () => { await browser?.close(); });

/** Runs a test with a copy of the page, in which `change(folder)` has changed files. */
async function withCopy(change, run, options) {
  const folder = mkdtempSync(join(tmpdir(), 'blosc2-web-'));
  cpSync(PAGE, folder, { recursive: true });
  change(folder);
  const server = await serve({ '/files/': FILES, '/': folder }, options);
  const { page, errors, close } = await open(browser, server.address);
  try {
    await run(page, server);
    assert.deepEqual(errors, []);
  } finally {
    await close();
    server.close();
    rmSync(folder, { recursive: true });
  }
}

function edit(path, edited) {
  const text = readFileSync(path, 'utf8');
  const changed = edited(text);
  assert.notEqual(changed, text, `${path} was changed`);
  writeFileSync(path, changed);
}

test('after a panic the viewer starts again', () => withCopy((folder) => {
  // A function that ends as a panic does: the hook is called, and the instruction `unreachable` is run.
  const trap = '0,97,115,109,1,0,0,0,1,4,1,96,0,0,3,2,1,0,7,5,1,1,116,0,0,10,5,1,3,0,0,11';
  edit(join(folder, 'blosc2_web_simd.js'), (text) => `${text}
    const { t: trap } = new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array([${trap}]))).exports;
    Viewer.prototype.cells = () => { self.blosc2Panic('panicked for the test'); trap(); };`);
}, async (page) => {
  await choose(page, 'volume.b2nd');
  await view(page, 'picture');
  await page.click('#tab-table');
  await page.waitForFunction(() => document.querySelector('#message').textContent.includes('has failed on this file'));
  assert.match(await page.textContent('#message p'), /volume\.b2nd: .* started again.*panicked for the test/);
  await page.waitForSelector('#empty:not([hidden])');
  // The new worker reads.
  await choose(page, 'picture.b2nd');
  await view(page, 'picture');
  await view(page, 'plot');
}));

test('a browser without SIMD has a module', () => withCopy((folder) => {
  edit(join(folder, 'worker.js'), (text) => text.replace('WebAssembly.validate(SIMD)', 'false'));
  for (const name of ['blosc2_web_simd.js', 'blosc2_web_simd_bg.wasm']) rmSync(join(folder, name));
}, async (page, server) => {
  await choose(page, 'volume.b2nd');
  await view(page, 'picture');
  assert.ok(server.log.some(({ path }) => path === '/blosc2_web_bg.wasm'));
  await page.selectOption('#scope', 'all');
  const found = parseNpy(await save(page, 'npy'));
  assert.ok(found.items.equals(parseNpy(readFileSync(`${FILES}/volume.npy`)).items));
}));

/** The number of requests of the file, after no more arrive. */
async function requests(page, server) {
  let count = -1;
  while (count !== server.log.length) {
    count = server.log.length;
    await page.waitForTimeout(400);
  }
  return count;
}

test('reading is cancelled', () => withCopy(() => {}, async (page, server) => {
  await page.goto(`${server.address}/?url=/files/wave.b2nd`);
  await page.click('#cancel');
  await page.waitForSelector('#progress', { state: 'hidden' });
  // There are 100 blocks and more.
  const count = await requests(page, server);
  assert.ok(count < 80, `${count} requests`);
  assert.equal(await page.getAttribute('#plot', 'data-done'), 'false');
  // The worker answers.
  await page.click('#tab-table');
  await page.waitForSelector('#scroller[data-done=true]');
  assert.equal(await page.locator('#table tbody tr').first().locator('th').textContent(), '0');
  // The check has a worker of its own.
  await page.click('#tab-check');
  await page.click('#check-all');
  await page.waitForFunction(() => /[1-9].* read of a file of/.test(document.querySelector('#report').textContent));
  await page.click('#report button');
  assert.equal(await page.textContent('#report'), 'The check was cancelled.');
  const after = await requests(page, server);
  await page.waitForTimeout(500);
  assert.equal(server.log.length, after);
}, { delay: 40 }));

test('an item needs the bytes of its block', () => withCopy(() => {}, async (page, server) => {
  await page.goto(`${server.address}/?url=/files/wave.b2nd#view=table`);
  await page.waitForSelector('#scroller[data-done=true]');
  await settled(page, 'table');
  const bytes = () => server.log.filter(({ path }) => path === '/files/wave.b2nd').reduce((sum, { bytes }) => sum + bytes, 0);
  const opened = bytes();
  await page.fill('#row', '1234560');
  await page.press('#row', 'Enter');
  await page.waitForFunction(() => document.querySelector('#table tbody th').textContent === '1234560');
  // A block of 20,000 items of 8 bytes, and the header and the block starts of its chunk.
  const page8k = 8 << 10;
  assert.ok(bytes() - opened <= 160_000 + 3 * page8k, `${bytes() - opened} bytes for an item`);
  assert.ok(opened <= 160_000 + 8 * page8k, `${opened} bytes for opening and the first rows`);
}));
