// The server offers no option for its address and would listen on every interface of the machine.
const net = require('node:net');
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  if (typeof port !== 'number') return listen.call(this, port, ...rest);
  return listen.call(this, port, '127.0.0.1', ...rest.filter((part) => typeof part === 'function'));
};
