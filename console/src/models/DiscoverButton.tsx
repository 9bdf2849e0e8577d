import { Radar } from "lucide-react";
import { lazy, Suspense, useRef, useState } from "react";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { modelTexts } from "../texts/models";

const DiscoverForm = lazy(async () => ({ default: (await import("./DiscoverForm")).DiscoverForm }));

/** A button that opens the list of models that providers offer and that are not in the catalog. */
export function DiscoverButton() {
  const models = modelTexts;
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
