import { createContext } from "react";

/** Whether the component is inside a dialog, which is rendered above the page's landmarks. This module does not import
 * the dialog, because the first page needs no dialog. */
export const InDialog = createContext(false);
