/* The names of DLPack's capsules, which say what they hold and whether it was taken. */
#ifndef DLW_CAPSULE_H_
#define DLW_CAPSULE_H_

#define DLW_LEGACY "dltensor"
#define DLW_LEGACY_USED "used_dltensor"
#define DLW_VERSIONED "dltensor_versioned"
#define DLW_VERSIONED_USED "used_dltensor_versioned"
#define DLW_EXCHANGE_API "dlpack_exchange_api"

#endif
