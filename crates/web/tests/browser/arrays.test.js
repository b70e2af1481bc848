// What the page exports as `.npy` is what NumPy has: at least 200 arrays that Python wrote, and files of old versions.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { after, before, test } from 'node:test';
import { FILES, PAGE, launch, open, parseNpy } from './browser.js';
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

/** Clicks a button that saves a file, and returns the bytes that the page offers, without a download of the browser. */
async function saved(page, selector) {
  const base64 = await page.evaluate(async (selector) => {
    const blob = await new Promise((resolve, reject) => {
      const create = URL.createObjectURL;
      URL.createObjectURL = (blob) => { URL.createObjectURL = create; resolve(blob); return '#'; };
      document.querySelector('#message').hidden = true;
      document.querySelector(selector).click();
      setTimeout(() => reject(new Error('nothing was saved')), 15_000);
    });
    const bytes = new Uint8Array(await blob.arrayBuffer());
    let text = '';
    for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
    return btoa(text);
  }, selector);
  return Buffer.from(base64, 'base64');
}

test('exported arrays equal those of NumPy', async (t) => {
  const { python, arrays } = JSON.parse(readFileSync(`${FILES}/arrays/arrays.json`));
  assert.ok(python >= 200, python);
  const { page, errors, close } = await open(browser, server.address);
  const wrong = [];
  try {
    let file;
    for (const { entry, column, npy, ...each } of arrays) {
      const name = [basename(each.file), entry, column].filter(Boolean).join(' ');
      try {
        if (each.file !== file) {
          file = each.file;
          await page.setInputFiles('#file', file);
          await page.waitForFunction((name) => document.querySelector('#file-name').textContent.startsWith(`${name} ·`), basename(file));
          await page.click('#tab-table');
          await page.selectOption('#scope', 'all');
        }
        if (entry) {
          await page.click(`#tree [data-key="${entry}"]`);
          await page.waitForFunction((key) => location.hash.includes(`entry=${encodeURIComponent(key)}`), entry);
        }
        if (column) await page.selectOption('#column-choice', column);
        const found = parseNpy(await saved(page, column ? '#column-npy' : '[data-format=npy]'));
        const expected = parseNpy(readFileSync(npy));
        assert.equal(found.header.trim(), expected.header.trim());
        assert.ok(found.items.equals(expected.items), 'the items differ');
      } catch (error) {
        wrong.push(`${name}: ${error.message.split('\n').slice(0, 6).join(' ')}, ${await page.textContent('#message')}`);
        if (wrong.length > 20) break;
      }
    }
    assert.deepEqual(wrong, []);
    assert.deepEqual(errors, []);
  } finally {
    await close();
  }
  t.diagnostic(`${python} arrays of Python, ${arrays.length - python} of old versions`);
});
