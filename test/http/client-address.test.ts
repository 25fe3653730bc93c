/** Whom a request comes from, behind proxies and without (R34, RFC 7239). */

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import * as fc from 'fast-check';
import { createClientAddress } from '../../dist/http/client-address.js';

const clientAddress = createClientAddress(['10.0.0.0/8', '192.0.2.7', '2001:db8:f::/48']);

function addressOf(remoteAddress: string, headers: Readonly<Record<string, string>>): string {
  return clientAddress({ remoteAddress, header: (name) => headers[name] });
}

const proxy = '10.0.0.1';

suite('a connection that is no trusted proxy', () => {
  test('is the client itself, whatever it says, however its address is written', () => {
    const headers = { forwarded: 'for=1.2.3.4', 'x-forwarded-for': '1.2.3.4' };
    for (const address of ['11.0.0.1', '192.0.2.8', '2001:db8:e::1'])
      assert.equal(addressOf(address, headers), address);
    assert.equal(addressOf('::ffff:11.0.0.1', {}), '11.0.0.1');
    assert.equal(addressOf('::ffff:b00:1', {}), '11.0.0.1');
    assert.equal(addressOf('2001:DB8:0:0::0:1', {}), '2001:db8::1');
    assert.equal(addressOf('', headers), '', 'it is gone');
  });
});

suite('a trusted proxy', () => {
  test('is believed in a network, by its address, over IPv6 and as IPv4 written as IPv6', () => {
    for (const peer of [proxy, '192.0.2.7', '2001:db8:f::1', '::ffff:10.9.8.7'])
      assert.equal(addressOf(peer, { 'x-forwarded-for': '1.2.3.4' }), '1.2.3.4', peer);
  });

  /** By the client, what names it. */
  const forwardedFor: Readonly<Record<string, string>> = {
    '1.2.3.4': `1.2.3.4 | 6.6.6.6, 1.2.3.4 | not an address, 1.2.3.4 |
      6.6.6.6, 1.2.3.4, 10.3.3.3, 2001:db8:f::2 | 1.2.3.4:5678 | ::ffff:1.2.3.4`,
    '10.0.0.9': `10.0.0.9, 10.3.3.3`,
    '6.6.6.6': `6.6.6.6, 10.0.0.8${', 10.3.3.3'.repeat(18)}`,
    '10.0.0.8': `6.6.6.6, 10.0.0.8${', 10.3.3.3'.repeat(19)}`,
    '2001:db8::1': `[2001:db8::1]:5678 | [2001:db8::1] | 2001:DB8::0:1`,
    [proxy]: `1.2.3.4, |  | 1.2.3.4, unknown | 1.2.3.4, 01.2.3.4 | 1.2.3.4, 1.2.3.4.5 |
      1.2.3.4, 1.2.3.4:port | 1.2.3.4, example.org`,
  };
  const forwarded: typeof forwardedFor = {
    '1.2.3.4': `for=1.2.3.4 | For="1.2.3.4:4711" | for="\\1.2.3.4" |
      proto=https;for=1.2.3.4;by=10.0.0.2;host="a,b;for=6.6.6.6" |
      for=6.6.6.6, for=1.2.3.4 , for=10.3.3.3;proto=http | for=6.6.6.6,for="1.2.3.4:_port"`,
    '2001:db8:cafe::17': `FOR="[2001:db8:cafe::17]:4711"`,
    [proxy]: `for=1.2.3.4, for=unknown | for=1.2.3.4, for="_hidden" | for=1.2.3.4, for=_SEVKISEK |
      for=1.2.3.4, proto=https | for=1.2.3.4, | for=1.2.3.4;x=" |
      for=6.6.6.6;x=", for="[2001:db8::1]" | for=6.6.6.6 for=1.2.3.4 | for = 1.2.3.4 |
      1.2.3.4 | `,
  };
  for (const [header, rows] of Object.entries({ 'x-forwarded-for': forwardedFor, forwarded })) {
    test(`names its client in ${header}`, () => {
      for (const [client, values] of Object.entries(rows)) {
        for (const value of values.split(/\s*\|\s*/))
          assert.equal(addressOf(proxy, { [header]: value }), client, value);
      }
    });
  }

  test('that names two clients is believed for neither', () => {
    const one = { forwarded: 'for=1.2.3.4', 'x-forwarded-for': '1.2.3.4' };
    assert.equal(addressOf(proxy, one), '1.2.3.4');
    assert.equal(addressOf(proxy, { ...one, forwarded: 'for=6.6.6.6' }), proxy);
    assert.equal(addressOf(proxy, { ...one, forwarded: 'for=unknown' }), proxy);
  });
});

test('whatever a client sends in front, what the proxy adds is the client or nothing is', () => {
  const added = [', for=1.2.3.4', ', for="1.2.3.4"', ', for="1.2.3.4";by="10.0.0.1"'];
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc
          .array(fc.constantFrom('for=', '"', '6.6.6.6', ',', ';', '\\', ' '))
          .map((a) => a.join('')),
      ),
      fc.constantFrom(...added),
      (sent, rest) => {
        assert.ok(['1.2.3.4', proxy].includes(addressOf(proxy, { forwarded: sent + rest })));
        assert.equal(addressOf(proxy, { 'x-forwarded-for': `${sent}, 1.2.3.4` }), '1.2.3.4');
      },
    ),
  );
});

test('of sixteen kilobytes of quotes only the end is read', () => {
  const forwarded = 'for="'.repeat(3_000);
  assert.equal(addressOf(proxy, { forwarded }), proxy);
  assert.equal(addressOf(proxy, { forwarded: `${'x="";'.repeat(3_000)}for=1.2.3.4` }), proxy);
});
