import { createContext } from "react";

/** Whether the place is in a dialog, which lies above the page's landmarks. Apart from the dialog, which the first page
 * does without. */
export const InDialog = createContext(false);
