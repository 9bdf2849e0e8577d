import { Server } from "lucide-react";
import { lazy, Suspense, useRef, useState } from "react";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { texts } from "../texts";

const EndpointForm = lazy(async () => ({ default: (await import("./EndpointForm")).EndpointForm }));

/** Opens the form of an endpoint of the organization's own. */
export function EndpointButton() {
  const { endpoint } = texts;
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const close = () => setOpen(false);
  return (
    <>
      <Button ref={trigger} onClick={() => setOpen(true)}><Server aria-hidden />{endpoint.add}</Button>
      <Dialog open={open} onClose={close} returnTo={trigger} title={endpoint.title} text={endpoint.text} wide>
        <Suspense><EndpointForm onDone={close} /></Suspense>
      </Dialog>
    </>
  );
}
