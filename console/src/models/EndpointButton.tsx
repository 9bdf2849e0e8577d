import { Server } from "lucide-react";
import { lazy, Suspense, useRef, useState } from "react";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { endpointTexts } from "../texts/models";

const EndpointForm = lazy(async () => ({ default: (await import("./EndpointForm")).EndpointForm }));

/** A button that opens the form for adding the organization's own endpoint. */
export function EndpointButton() {
  const endpoint = endpointTexts;
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
