// Serves the page as the gateway does, with canned answers. `node page/stub.js PORT` for a look at it.

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

import * as canned from './canned.js';

const folder = new URL('../../../crates/gateway/src/http/page/', import.meta.url);
const read = (name) => readFileSync(new URL(name, folder), 'utf8');
export const SCRIPTS = ['text.js', 'scale.js', 'diagnosis.js', 'map.js', 'lists.js', 'automatic.js', 'main.js'];

/** The document and its policy, put together as `page.rs` does. */
export function assembled() {
  const css = read('page.css'), js = SCRIPTS.map(read).join('');
  const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  const policy = `default-src 'none'; script-src ${hash(js)}; style-src ${hash(css)}; connect-src 'self'; img-src data:; base-uri 'none'; `
    + "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
  return { document: read('page.html').replace('/*css*/', () => css).replace('/*js*/', () => js), policy };
}

/** A server of the page on a free port; `answers` maps a path below /_heatsink/ to a function of its URL that gives JSON or a `[status, JSON]`. */
export async function serve(answers = {}, port = 0) {
  const all = {
    heat: () => canned.heat(), 'heat/map': (url) => canned.map(url.searchParams.get('span')), reshards: canned.reshards,
    partitions: (url) => canned.partitions(url.searchParams.get('table')), ...answers,
  };
  const asked = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url, 'http://stub');
    asked.push(request.url);
    if (url.pathname === '/') {
      const { document, policy } = assembled();
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy }).end(document);
      return;
    }
    const found = all[url.pathname.replace('/_heatsink/', '')];
    const answer = found ? found(url, request) : null;
    const [status, body] = Array.isArray(answer) ? answer : answer ? [200, answer] : [404, { error: 'nothing is at this path' }];
    response.writeHead(status, { 'content-type': 'application/json' }).end(typeof body === 'string' ? body : JSON.stringify(body));
  }).listen(port, '127.0.0.1');
  await once(server, 'listening');
  const close = () => { server.close(); server.closeAllConnections(); };
  return { url: `http://127.0.0.1:${server.address().port}/`, answers: all, asked, close };
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  console.log((await serve({}, Number(process.argv[2] ?? 0))).url);
}
