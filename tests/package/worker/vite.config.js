export default { worker: { format: "es" } }; // Vite says so itself where it is missing
