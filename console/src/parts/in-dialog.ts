import { createContext } from "react";

/** The id of the dialog that shows the component, or null outside of dialogs. Dialogs are rendered above the page's
 * landmarks. This module does not import the dialog, because the first page needs no dialog. */
export const InDialog = createContext<string | null>(null);
