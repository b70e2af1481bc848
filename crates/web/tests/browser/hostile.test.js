// Frames that are made to harm a reader, and stores with changed bytes: each has facts or a message, and the page and its
// worker live on.
//
// Every eighth one is opened; with WEB_ALL_HOSTILE=1, all are.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { FILES, PAGE, launch, memory, open } from './browser.js';
import { serve } from './server.js';

const FOLDER = fileURLToPath(new URL('../../../../tests/hostile', import.meta.url));
const EVERY = process.env.WEB_ALL_HOSTILE ? 1 : 8;
/** The most memory of the process of the page, in MiB. A file may name up to the limits of the module. */
const MOST = 1024;

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

/** Copies of a file with some changed bytes, always the same ones. */
function* changed(name, file, count, state) {
  const random = (limit) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) % limit;
  };
  for (let copy = 1; copy <= count; copy += 1) {
    const bytes = Buffer.from(file);
    for (let count = 1 + random(8); count > 0; count -= 1) bytes[random(bytes.length)] = random(256);
    yield [`${copy}-${name}`, bytes];
  }
}

/** The frames, and ten copies of each with some changed bytes. */
function* frames() {
  let number = 53;
  for (const kind of ['crashing', 'intact']) {
    for (const name of readdirSync(`${FOLDER}/${kind}`).sort()) {
      const frame = readFileSync(`${FOLDER}/${kind}/${name}`);
      yield [name, frame];
      yield* changed(name, frame, 10, number += 1);
    }
  }
}

/** Copies of stores, tables and arrays of values with some changed bytes. */
function* stores() {
  const names = ['table.b2z', 'kinds.b2z', 'store.b2z', 'embed.b2e', 'objects.b2frame', 'batches.b2frame', 'lists.b2frame', 'tensor.b2frame'];
  for (const [k, name] of names.entries()) yield* changed(name, readFileSync(`${FILES}/${name}`), 40, k);
}

test('hostile frames have facts or a message', (t) => openAll(t, [...frames()], 1140));
test('hostile stores have facts or a message', (t) => openAll(t, [...stores()], 320));

async function openAll(t, all, least) {
  assert.ok(all.length >= least, all.length);
  const { page, errors, close } = await open(browser, server.address);
  const outcomes = { facts: 0, message: 0 };
  let peak;
  try {
    for (const [name, buffer] of all.filter((_, k) => k % EVERY === 0)) {
      await page.setInputFiles('#file', { name, mimeType: 'application/octet-stream', buffer });
      // The facts, or the message, of this file.
      const handle = await page.waitForFunction((name) => {
        const message = document.querySelector('#message');
        if (!message.hidden && message.textContent.includes(name)) return message.textContent;
        return document.querySelector('#file-name').textContent.startsWith(`${name} ·`) && 'facts';
      }, name);
      const text = await handle.jsonValue();
      assert.doesNotMatch(text, /has failed on this file/, name);
      outcomes[text === 'facts' ? 'facts' : 'message'] += 1;
      // The shown view is read, which decodes blocks, and the file is checked.
      if (text === 'facts') {
        await page.waitForSelector('#progress', { state: 'hidden' });
        await page.click('#tab-check');
        await page.click('#check-all');
        await page.waitForSelector('#report[data-done=true]');
        assert.doesNotMatch(await page.textContent('#message'), /has failed on this file/, name);
      }
    }
    assert.deepEqual(errors, []);
    peak = await memory(browser);
  } finally {
    await close();
  }
  assert.ok(outcomes.facts > 0 && outcomes.message > 0);
  t.diagnostic(`${JSON.stringify(outcomes)}, ${peak} MiB`);
  assert.ok(peak < MOST, `${peak} MiB`);
}
