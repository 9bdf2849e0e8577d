import { Radar } from "lucide-react";
import { lazy, Suspense, useRef, useState } from "react";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { texts } from "../texts";

const DiscoverForm = lazy(async () => ({ default: (await import("./DiscoverForm")).DiscoverForm }));

/** Opens the choice of the models that providers offer and the catalog lacks. */
export function DiscoverButton() {
  const { models } = texts;
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const close = () => setOpen(false);
  return (
    <>
      <Button ref={trigger} onClick={() => setOpen(true)}><Radar aria-hidden />{models.discover}</Button>
      <Dialog open={open} onClose={close} returnTo={trigger} title={models.discoverTitle} text={models.discoverText} wide>
        <Suspense><DiscoverForm onDone={close} /></Suspense>
      </Dialog>
    </>
  );
}
