// What the page exports as `.npy` is what NumPy has: at least 200 arrays that Python wrote, and files of old versions.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { after, before, test } from 'node:test';
import { FILES, PAGE, launch, open, parseNpy, saveBy, settled } from './browser.js';
import { serve } from './server.js';

let browser;
let server;
before(async () => {
  browser = await launch();
  server = await serve({ '/': PAGE });
});
after(async () => {
  await browser?.close();
  server?.close();
});

test('exported arrays equal those of NumPy', async (t) => {
  const { python, arrays } = JSON.parse(readFileSync(`${FILES}/arrays/arrays.json`));
  assert.ok(python >= 200, python);
  const { page, errors, close } = await open(browser, server.address);
  const wrong = [];
  try {
    let file;
    for (const { entry, column, npy, ...each } of arrays) {
      const name = [basename(each.file), entry, column].filter(Boolean).join(' ');
      if (each.file !== file) {
        file = each.file;
        await page.setInputFiles('#file', file);
        await page.waitForFunction((name) => document.querySelector('#file-name').textContent.startsWith(`${name} ·`), basename(file));
      }
      if (entry) {
        await page.click(`#tree [data-key="${entry}"]`);
        await page.waitForFunction((key) => location.hash.includes(`entry=${encodeURIComponent(key)}`), entry);
      }
      await page.click('#tab-table');
      await settled(page, 'table');
      if (column) {
        await page.selectOption('#column-choice', column);
        await page.waitForSelector('#summary[data-done=true]');
      }
      await page.selectOption('#scope', 'all');
      const found = parseNpy(await saveBy(page, column ? '#column-npy' : '[data-format=npy]'));
      const expected = parseNpy(readFileSync(npy));
      if (found.header.trim() !== expected.header.trim()) wrong.push(`${name}: ${found.header.trim()}, expected ${expected.header.trim()}`);
      else if (!found.items.equals(expected.items)) wrong.push(`${name}: other items`);
    }
    assert.deepEqual(wrong, []);
    assert.deepEqual(errors, []);
  } finally {
    await close();
  }
  t.diagnostic(`${python} arrays of Python, ${arrays.length - python} of old versions`);
});
