/** `GET /hello` (R32). */

import { type Handler, textReply } from '../http/message.ts';

const greeting = textReply(200, 'Hello from Inkwell.');

export const hello: Handler = () => greeting;
