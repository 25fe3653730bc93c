/** One attack until it is killed, as a process of its own. Argument: JSON, as attacks.mjs has it. */

import { shapes } from '#support/shapes.js';

const { shape, connections, target } = JSON.parse(process.argv[2]);
// What fails, fails because its server refuses it or ends its connection: it is made again.
await shapes[shape].attack(connections)(target);
setInterval(() => undefined, 60_000);
