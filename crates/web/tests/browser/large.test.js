// A file of 6 GiB, most of it a hole: only what is shown is read.

import assert from 'node:assert/strict';
import { closeSync, ftruncateSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { FILES, PAGE, choose, facts, launch, memory, open, view } from './browser.js';
import { serve } from './server.js';

const NAME = 'large.b2nd';
const HOLE = 6n << 30n;
/** The most memory of the process of the page, in MiB. */
const MOST = 300;

let browser;
let server;
before(async () => {
  browser = await launch();
  server = await serve({ '/': PAGE });
  writeLarge();
});
after(async () => {
  await browser?.close();
  server?.close();
  rmSync(`${FILES}/${NAME}`, { force: true });
});

/** Writes a frame with a hole between its chunks and its index, as a file has after its chunks were replaced. */
function writeLarge() {
  const frame = readFileSync(`${FILES}/volume.b2nd`);
  // The frame format: the length of the header at 11, of the frame at 16, of the compressed chunks at 39.
  const [header, length, compressed] = [frame.readUInt32BE(11), frame.readBigUInt64BE(16), frame.readBigUInt64BE(39)];
  assert.equal(length, BigInt(frame.length));
  frame.writeBigUInt64BE(length + HOLE, 16);
  frame.writeBigUInt64BE(compressed + HOLE, 39);
  const end = header + Number(compressed);
  const file = openSync(`${FILES}/${NAME}`, 'w');
  ftruncateSync(file, Number(length + HOLE));
  writeSync(file, frame, 0, end, 0);
  writeSync(file, frame, end, frame.length - end, Number(BigInt(end) + HOLE));
  closeSync(file);
}

test('a file of 6 GiB needs little memory', async (t) => {
  assert.ok(statSync(`${FILES}/${NAME}`).size > 6 * 2 ** 30);
  const { page, errors, close } = await open(browser, server.address);
  try {
    await choose(page, NAME);
    assert.equal((await facts(page)).shape, '20, 60, 80');
    for (const name of ['picture', 'plot', 'table', 'chunks']) await view(page, name);
    const peak = await memory(browser);
    t.diagnostic(`${peak} MiB`);
    assert.ok(peak < MOST, `${peak} MiB`);
    assert.deepEqual(errors, []);
  } finally {
    await close();
  }
});
