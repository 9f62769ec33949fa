// @ts-check
// Requests to Python and their replies, over a socket or over the comm of a Jupyter widget.
//
// A carrier has `send(object)` and calls `receive(object)`. Link numbers the requests, gives replies
// to those who asked, and keeps at most one request of each kind on its way: while a point is
// dragged, only the newest place is of interest when the reply arrives.

const PATIENCE = 300; // milliseconds after which a newer request overtakes one that is on its way

export class Link {
  constructor(carrier) {
    this.carrier = carrier;
    this.seq = Math.floor(Math.random() * 2 ** 40); // two views of a widget hear each other's replies
    this.waiting = new Map(); // seq → {resolve, reject}
    this.channels = new Map(); // name → {sent, pending, timer}
    this.unasked = (_reply) => {};
    carrier.receive = (reply) => this.receive(reply);
  }

  /**
   * Send a request; the promise is kept by its reply.
   * @returns {Promise<any>}
   */
  ask(request) {
    const seq = ++this.seq;
    return new Promise((resolve, reject) => {
      this.waiting.set(seq, { resolve, reject });
      this.carrier.send({ ...request, seq });
    });
  }

  /**
   * Ask, but only for the newest: a request that is overtaken before it was sent is never sent, and
   * `done` and `failed` are only called for replies that are newer than those seen before.
   */
  latest(name, request, done, failed = (error) => {}) {
    const channel = this.channels.get(name) ?? { sent: 0, shown: 0, flying: 0, pending: null, timer: 0 };
    this.channels.set(name, channel);
    channel.pending = { request, done, failed };
    if (!channel.flying) this.depart(channel);
    else if (!channel.timer) {
      channel.timer = setTimeout(() => {
        channel.timer = 0;
        if (channel.pending) this.depart(channel);
      }, PATIENCE);
    }
  }

  depart(channel) {
    const { request, done, failed } = channel.pending;
    channel.pending = null;
    clearTimeout(channel.timer);
    channel.timer = 0;
    channel.flying += 1;
    const number = ++channel.sent;
    const fresh = () => {
      if (number < channel.shown) return false;
      channel.shown = number;
      return true;
    };
    this.ask(request)
      .then((reply) => fresh() && reply.type !== "superseded" && done(reply))
      .catch((error) => fresh() && failed(error))
      .finally(() => {
        channel.flying -= 1;
        if (channel.pending && !channel.flying) this.depart(channel);
      });
  }

  receive(reply) {
    const asked = this.waiting.get(reply.seq);
    if (!asked) {
      this.unasked(reply);
      return;
    }
    this.waiting.delete(reply.seq);
    if (reply.type === "error") asked.reject(new Error(reply.message));
    else asked.resolve(reply);
  }

  /** Give up what was asked and has no reply: the connection is gone. */
  abandon(message) {
    for (const asked of this.waiting.values()) asked.reject(new Error(message));
    this.waiting.clear();
  }
}

/** Carries messages over a WebSocket, which it opens anew when it was closed. */
export class SocketCarrier {
  constructor(url, changed) {
    this.url = url;
    this.changed = changed; // called with "open", "closed" or "refused"
    this.receive = (reply) => {};
    this.queue = [];
    this.attempts = 0;
    this.open();
  }

  open() {
    const socket = new WebSocket(this.url);
    this.socket = socket;
    socket.onopen = () => {
      this.attempts = 0;
      this.changed("open");
      for (const text of this.queue.splice(0)) socket.send(text);
    };
    socket.onmessage = (event) => this.receive(JSON.parse(event.data));
    socket.onclose = () => {
      this.queue = [];
      this.changed("closed");
      this.attempts += 1;
      if (this.attempts <= 30) setTimeout(() => this.open(), Math.min(5000, 250 * 2 ** this.attempts));
    };
  }

  send(message) {
    const text = JSON.stringify(message);
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(text);
    else this.queue.push(text);
  }
}

/** Carries messages over the comm of a Jupyter widget (anywidget). */
export class WidgetCarrier {
  constructor(model) {
    this.model = model;
    this.receive = (reply) => {};
    this.hear = (message) => this.receive(message);
    model.on("msg:custom", this.hear);
  }

  send(message) {
    this.model.send(message);
  }

  close() {
    this.model.off("msg:custom", this.hear);
  }
}
